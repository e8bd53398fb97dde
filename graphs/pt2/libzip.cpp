#include <dlfcn.h>
#include <zip.h>

#include "src/core/throw_error.hpp"

// The functions of libzip that archive.cpp calls. The library is loaded at the first of them: with it come libcrypto
// and others, whose start takes longer than a prediction.

namespace {

template <class Function>
Function* own(const char* name) {
    static void* const library = ::dlopen(FTAX_LIBZIP_NAME, RTLD_NOW | RTLD_LOCAL);
    void* const found = library ? ::dlsym(library, name) : nullptr;
    if (!found) ftax::throw_error(ftax::ErrorCode::refused, "libzip does not load: {}", ::dlerror());
    return reinterpret_cast<Function*>(found);
}

}  // namespace

#define FTAX_LIBZIP(result, name, parameters, arguments) \
    result name parameters {                             \
        return own<decltype(name)>(#name) arguments;     \
    }

extern "C" {
FTAX_LIBZIP(zip_t*, zip_open, (const char* path, int flags, int* error), (path, flags, error))
FTAX_LIBZIP(void, zip_discard, (zip_t * zip), (zip))
FTAX_LIBZIP(void, zip_error_init_with_code, (zip_error_t * error, int code), (error, code))
FTAX_LIBZIP(const char*, zip_error_strerror, (zip_error_t * error), (error))
FTAX_LIBZIP(void, zip_error_fini, (zip_error_t * error), (error))
FTAX_LIBZIP(zip_int64_t, zip_get_num_entries, (zip_t * zip, zip_flags_t flags), (zip, flags))
FTAX_LIBZIP(int, zip_stat_index, (zip_t * zip, zip_uint64_t i, zip_flags_t f, zip_stat_t* stat), (zip, i, f, stat))
FTAX_LIBZIP(zip_file_t*, zip_fopen_index, (zip_t * zip, zip_uint64_t i, zip_flags_t f), (zip, i, f))
FTAX_LIBZIP(zip_int64_t, zip_fread, (zip_file_t * file, void* to, zip_uint64_t bytes), (file, to, bytes))
FTAX_LIBZIP(int, zip_fclose, (zip_file_t * file), (file))
FTAX_LIBZIP(const char*, zip_strerror, (zip_t * zip), (zip))
FTAX_LIBZIP(zip_error_t*, zip_file_get_error, (zip_file_t * file), (file))
}
