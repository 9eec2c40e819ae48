#include "options.h"

#include <stdio.h>
#include <string.h>

/* The place of a word among those that have bars between them; -1 if it is not there. */
static int place_among(const char *words, const char *word) {
    for (int place = 0;; place++) {
        size_t length = strcspn(words, "|");
        if (strlen(word) == length && strncmp(word, words, length) == 0) {
            return place;
        }
        if (words[length] == '\0') {
            return -1;
        }
        words += length + 1;
    }
}

static void read_value(const program_option *option, const char *text, work_line *of) {
    *of = program_work_line_of(text);
    if (option->kind == OPTION_TEXT) {
        *(const char **)option->value = text;
        return;
    }
    if (option->kind == OPTION_CHOICE) {
        int place = place_among(option->words, text);
        if (place < 0) {
            program_work_refuse(of, "%s is not one of %s", option->name, option->words);
        }
        *(int *)option->value = place;
        return;
    }
    if (option->kind == OPTION_NUMBER) {
        *(double *)option->value = program_work_number(of, option->name, option->least, option->most);
    } else {
        long long least = (long long)option->least, most = (long long)option->most;
        long whole = (long)program_work_integer(of, option->name, least, most);
        if (option->kind == OPTION_INT) {
            *(int *)option->value = (int)whole;
        } else {
            *(long *)option->value = whole;
        }
    }
    if (!program_work_is_over(of)) {
        program_work_refuse(of, "%s has more than one value", option->name);
    }
}

void program_print_usage(const char *program, const program_option *options, const work_line *read) {
    fprintf(stderr, "%s: %s; usage: %s", program, read->wrong, program);
    for (const program_option *option = options; option->name != NULL; option++) {
        fprintf(stderr, " [%s", option->name);
        if (option->words != NULL) {
            fprintf(stderr, " %s", option->words);
        } else if (option->kind != OPTION_FLAG) {
            fprintf(stderr, " %.16g..%.16g", option->least, option->most);
        }
        fputc(']', stderr);
    }
    fputc('\n', stderr);
}

work_line program_read_options(const program_option *options, char **words) {
    work_line read = program_work_line_of("");
    for (; *words != NULL && program_work_is_right(&read); words++) {
        const program_option *option = options;
        while (option->name != NULL && strcmp(option->name, *words) != 0) {
            option++;
        }
        if (option->name == NULL) {
            program_work_refuse(&read, "unknown option %s", *words);
        } else if (option->kind == OPTION_FLAG) {
            *(int *)option->value = 1;
        } else if (*++words == NULL) {
            program_work_refuse(&read, "%s has no value", option->name);
            break;
        } else {
            read_value(option, *words, &read);
        }
    }
    return read;
}
