/* User buffers as bytes. Processes may describe the same data by different counts and types, so algorithms split and
 * forward the bytes of the type signature, in its order: packed ones (layout.c) if data is not contiguous. */
#include "internal.h"

collwise_bytes collwise_bytes_of(const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    collwise_bytes view = {.data = (char *)buffer, .bytes = count * collwise_element_bytes(type)};
    if (view.bytes > 0 && !collwise_is_contiguous(type)) {
        view.data = view.copy = collwise_scratch(view.bytes, comm);
    }
    return view;
}

void collwise_bytes_pack(collwise_bytes *view, const void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    if (view->copy != NULL) {
        collwise_pack(view->copy, buffer, count, type, comm);
    }
}

void collwise_bytes_unpack(const collwise_bytes *view, void *buffer, size_t count, MPI_Datatype type, MPI_Comm comm) {
    if (view->copy != NULL) {
        collwise_unpack(view->copy, buffer, count, type, comm);
    }
}

void collwise_bytes_release(collwise_bytes *view) {
    collwise_scratch_free(view->copy);
    view->copy = NULL;
}
