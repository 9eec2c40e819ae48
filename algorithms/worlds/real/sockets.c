/* The socket that a process runs on: that of the CPUs to which the system binds it, as Linux describes them. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <sched.h>
#include <stdio.h>

enum { UNKNOWN = -1 };

static int socket_of_cpu(int cpu) {
    char path[96];
    int socket;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return UNKNOWN;
    }
    int found = fscanf(file, "%d", &socket) == 1 ? socket : UNKNOWN;
    fclose(file);
    return found;
}

int collwise_own_socket(int place, int on_node) {
    cpu_set_t allowed;
    int found = UNKNOWN;
    (void)place, (void)on_node;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return UNKNOWN;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            int socket = socket_of_cpu(cpu);
            if (found != UNKNOWN && socket != found) {
                return UNKNOWN;
            }
            found = socket;
        }
    }
    return found;
}
