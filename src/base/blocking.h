/* A thread that is about to wait for what other threads or processes do says
 * so, and says when it goes on: a pool of threads can then let another one
 * work meanwhile (milter/server.h). Without a listener nothing happens. */
#ifndef BASE_BLOCKING_H
#define BASE_BLOCKING_H

void blocking_begin(void);
void blocking_end(void);

/* Who listens: `changed` gets +1 and -1, on the thread that waits. Before
 * there are threads. */
void blocking_listen(void (*changed)(int by));

#endif
