/* Lets preloaded libraries come first. */
#include <dlfcn.h>
#include <string.h>

/* SimGrid 3.32 loads programs with RTLD_DEEPBIND, so that a program's symbols are resolved among its own libraries,
 * such as SimGrid's, before preloaded ones. Without that flag preloaded libraries come first, as everywhere else. */
void *dlopen(const char *file, int mode) {
    void *next = dlsym(RTLD_NEXT, "dlopen");
    void *(*open)(const char *, int);
    memcpy(&open, &next, sizeof open);
    return open(file, mode & ~RTLD_DEEPBIND);
}
