for (const table of document.querySelectorAll('table.sortable')) table.querySelectorAll('th button').forEach((button, column) =>
  button.addEventListener('click', () => {
    const head = button.parentElement, down = head.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
    for (const other of head.parentElement.children) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', down === 1 ? 'ascending' : 'descending');
    const value = row => row.children[column].dataset.v ?? row.children[column].textContent;
    const body = table.tBodies[0];
    [...body.rows].sort((a, b) => down * (head.classList.contains('text') ? value(a).localeCompare(value(b)) : value(a) - value(b)))
      .forEach(row => body.append(row));
  }));
