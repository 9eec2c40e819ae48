/* A simulated host: its properties, the time that computation takes on it, and its sockets. */
#include "internal.h"

#include <simgrid/actor.h>
#include <simgrid/host.h>
#include <stdlib.h>

double collwise_host_property(const char *property) {
    const char *text = sg_host_get_property_value(sg_host_self(), property);
    return text == NULL ? 0 : strtod(text, NULL);
}

void collwise_spend(double seconds) {
    if (seconds > 0) {
        sg_actor_sleep_for(seconds);
    }
}

/* Its processes are spread over its sockets evenly, in blocks. */
int collwise_own_socket(int place, int on_node) {
    const char *text = sg_host_get_property_value(sg_host_self(), "collwise/sockets");
    int sockets = text == NULL ? 1 : atoi(text);
    return (int)((long)place * sockets / on_node);
}
