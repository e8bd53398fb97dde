// A layer without sources yet still is a library.
