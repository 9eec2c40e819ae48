/* Messages, and what a process does by a word of its program (messages.c). */
#ifndef COLLWISE_MESSAGES_H
#define COLLWISE_MESSAGES_H

#include "play.h"

/* Room for the spans of so many messages and one more. */
void play_make_room_for_spans(play *all, size_t count);

/* Ports and packets tell this (play_listener). */
void play_message_left(play *all, int32_t index, double seconds);
void play_message_arrived(play *all, int32_t index, double seconds);
void play_answer(play *all, int32_t index, double queued_seconds);

/* Posts a send or receive, or looks at a counter, which completes the request. */
void play_post(play *all, int rank, schedule_word word, uint32_t slot);
/* A counter of a process grows, which another one sees a little later. Nobody need look at it. */
void play_tell(play *all, int rank, schedule_word word);
/* Local work. Returns 0 if the process has to wait for its end. */
int play_work(play *all, int rank, schedule_word word);
/* The end of local work for which the process has waited. */
void play_end_work(play *all, int rank);

/* The process waits for a request, unless its time is known. */
void play_await(process *of, request *one);
/* The process takes what has arrived, the earliest first; under models one message arrives after the other. */
void play_take(play *all, int rank, const request *one);
/* Takes `count` complete requests from the one with number `first` on. */
void play_take_all(play *all, int rank, uint64_t first, uint32_t count);

/* A request of a strand that waits for it is complete at a known time. */
void play_add_complete(play *all, int rank, moment added);
/* The process takes what is complete first, not before all is known that is complete until then. */
void play_plan_fork(play *all, int rank);

#endif
