/* Talks to the modem of a station. */
#include <stdio.h>

#define BAUD_RATE 19200
#define MAX_RETRIES 7

/* Dial the number of a station; the return value is 0 if it answers. */
int dial(const char *number)
{
    for (int retry = 0; retry < MAX_RETRIES; retry++) {
        printf("ATD%s\n", number);
    }
    return -1;
}
