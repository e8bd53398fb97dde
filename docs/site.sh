#!/bin/sh
# site.sh FOLDER: the documentation as a site in FOLDER/site; fails on a link that leads nowhere.
set -eu
cd "$(dirname "$0")/.."
pages=$1/pages
rm -rf "$pages"
mkdir -p "$pages"
[ -x "$1/venv/bin/mkdocs" ] || { python3 -m venv "$1/venv" && "$1/venv/bin/pip" install --quiet --disable-pip-version-check mkdocs-material==9.8.2; }
# The pages lead to each other and to files all over the repository, which come along.
git ls-files '*.md' 'docs/*' 'data/*' 'examples/*' 'tests/oracle/*' 'tests/mutants/*' cmake LICENSE include |
    xargs cp --parents -t "$pages"
cat > "$1/mkdocs.yml" <<END
site_name: ftax
theme: {name: material, features: [navigation.indexes, search.suggest, content.code.copy]}
docs_dir: pages
site_dir: site
markdown_extensions: [tables, admonition, toc, pymdownx.superfences]
plugins: [search]
validation: {links: {anchors: warn, unrecognized_links: info, absolute_links: info}, omitted_files: ignore}
END
NO_MKDOCS_2_WARNING=1 "$1/venv/bin/mkdocs" build --quiet --strict -f "$1/mkdocs.yml"
echo "The documentation is in $1/site"
