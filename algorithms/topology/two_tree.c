/* Sanders, Speck & Traeff 2009: two binary trees that together keep every process's link busy in both directions.
 *
 * The P - 1 processes below the root take places 1, 2, ... of an in-order binary tree, whose inner nodes are even
 * places. In the first tree a process's place is its virtual rank; in the second the places are mirrored, which turns
 * odd into even, so that no process is an inner node twice. If the number of places is odd, the last one is not
 * mirrored: it is a leaf below its neighbour in the first tree, and below that one's mirror image in the second.
 *
 *     step:      the lowest bit of a place; leaves are the odd places, whose step is 1
 *     parent:    place - step if place has the bit 2 step or place + step > P - 1, else place + step
 *     children:  place - step / 2; place + step / 2, or place + step / 4, ... if that is above P - 1
 *     the topmost place, the largest power of two, is the root's child
 *
 * Edges have one of two colours: a process's two incoming edges differ, and so do its two outgoing ones. An edge is
 * used in every other step, by its colour; in each step a process then sends once and receives once at most. */
#include "topology/topology.h"

static int mirrored(int place, int places) {
    return places % 2 == 1 && place == places ? place : places - places % 2 + 1 - place;
}

/* 0, the root, for the topmost place. */
static int parent_place(int place, int places) {
    int step = place & -place;
    return (place & (2 * step)) != 0 || place + step > places ? place - step : place + step;
}

/* The left child for index 0, the right one for 1; 0 if there is none. */
static int child_place(int place, int places, int index) {
    int step = (place & -place) / 2;
    if (index == 0) {
        return step > 0 ? place - step : 0;
    }
    while (step > 0 && place + step > places) {
        step /= 2;
    }
    return step > 0 ? place + step : 0;
}

/* The colour of the edge into an inner place of the first tree. Siblings differ, and so do two neighbouring even
 * places whose mirror images are siblings; whether these lie left or right of a multiple of four depends on P. */
static int inner_colour(int place, int places) {
    int colour = 0;
    for (int parent = parent_place(place, places); parent > 0; parent = parent_place(place, places)) {
        colour ^= (places / 2 % 2) ^ (parent > place);
        place = parent;
    }
    return colour;
}

/* The colour of the edge into any place of the first tree; in the second it is the other one. So a leaf has the
 * colour of its mirror image. */
static int colour_of(int place, int places) {
    if (place % 2 == 0 || places == 1) {
        return inner_colour(place, places);
    }
    if (place == places) {
        return 1 - colour_of(child_place(place - 1, places, 0), places);
    }
    return inner_colour(mirrored(place, places), places);
}

/* The first step in which a place of the first tree receives: the next one after its parent's that has its colour.
 * In the second tree everything is a step later. */
static int first_step(int place, int places) {
    int parent = parent_place(place, places);
    if (parent == 0) {
        return 0;
    }
    int before = first_step(parent, places);
    return before + (before % 2 == colour_of(place, places) ? 2 : 1);
}

static void add_child(collwise_two_tree *at, int tree, int place, int root, int procs) {
    int places = procs - 1, virtual_rank = tree == 0 ? place : mirrored(place, places);
    at->children[at->child_count] = (virtual_rank + root) % procs;
    at->child_first_steps[at->child_count] = first_step(place, places) + tree;
    at->child_count++;
}

collwise_two_tree collwise_two_tree_at(int tree, int procs, int root, int rank) {
    int places = procs - 1, virtual_rank = (rank - root + procs) % procs;
    collwise_two_tree at = {.parent = -1, .first_step = -1};
    if (virtual_rank == 0) {
        if (places > 0) {
            add_child(&at, tree, 1 << collwise_log2(places), root, procs);
        }
        return at;
    }
    int place = tree == 0 ? virtual_rank : mirrored(virtual_rank, places), above = parent_place(place, places);
    at.parent = ((tree == 0 || above == 0 ? above : mirrored(above, places)) + root) % procs;
    at.first_step = first_step(place, places) + tree;
    for (int index = 0; index < 2; index++) {
        int child = child_place(place, places, index);
        if (child > 0) {
            add_child(&at, tree, child, root, procs);
        }
    }
    return at;
}
