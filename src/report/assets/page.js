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
for (const table of document.querySelectorAll('table.sortable')) {  // long tables can be searched
  if (table.tBodies[0].rows.length < 8) continue;
  const box = Object.assign(document.createElement('input'), {type: 'search', placeholder: `filter ${table.tBodies[0].rows.length} rows`});
  box.setAttribute('aria-label', `filter the table ${table.id}`);
  box.addEventListener('input', () => {
    const words = box.value.toLowerCase().split(' ');
    for (const row of table.tBodies[0].rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
  });
  table.parentElement.before(box);
  table.filter = text => { box.value = text; box.dispatchEvent(new Event('input')); };
}
// A table that needs more than its column of the page gets both; on a phone its rows become paragraphs.
function fit() {
  const tables = [...document.querySelectorAll('.wide')], narrow = matchMedia('(max-width:40rem)').matches;
  for (const wide of tables) wide.classList.remove('spans', 'cards');
  for (const wide of tables.filter(wide => wide.scrollWidth > wide.clientWidth + 1)) {
    wide.classList.add(narrow ? 'cards' : 'spans');
    const heads = [...wide.querySelectorAll('th')].map(head => head.textContent);
    if (narrow) wide.querySelectorAll('td').forEach((cell, i) => { cell.dataset.label = heads[i % heads.length]; });
  }
}
for (const event of ['resize', 'toggle']) addEventListener(event, fit, true);
fit();
// A pointer over a line or its name lets the others fade; behind it the best one stands out again, or all.
for (const figure of document.querySelectorAll('figure')) {
  const parts = figure.querySelectorAll('[data-series]'), best = figure.querySelector('.on')?.dataset.series;
  const pick = series => {
    figure.classList.toggle('picked', series !== undefined);
    for (const part of parts) part.classList.toggle('on', part.dataset.series === series);
  };
  pick(best);
  for (const part of parts) for (const [event, on] of [['pointerenter', true], ['focus', true], ['pointerleave', false], ['blur', false]])
    part.addEventListener(event, () => pick(on ? part.dataset.series : best));
}
