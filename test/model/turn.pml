// SPDX-License-Identifier: Apache-2.0

/*
 * Turns: what the owners of a shard do outside of its stream. See doc.go.
 *
 * An append is one step here, which is refused if the epoch is another one: append.pml shows that it is. Any node may
 * take the shard over at any time, so nothing here is safe because of a heartbeat. Time is in ticks. That a node is
 * suspended, or has died, needs no words: it makes no step while time passes. Each node owns the shard once: a node
 * that owns it again remembers nothing, and is a node like any other.
 */

#define LEASE	2	/* for so long an owner acts after it sent a check of its ownership, also if its clock loses a tick */
#define TRANSIT	1	/* a message to the agent arrives within so many ticks, or never */
#ifndef RESEND
#define RESEND	3	/* for so long the agent is asked for a start before it is sent again: LEASE and TRANSIT */
#endif

/* What the log of a task says. */
#define NONE		0
#define QUEUED		1	/* accepted, and nothing of it was sent to the agent */
#define ACCEPTED	2	/* accepted; it may have been sent */
#define ENDED		3

/* What an owner does with a task. */
#define IDLE	0
#define QUEUE	1	/* its start waits for the agent */
#define ASK	2	/* asks the agent whether it has the start */
#define SEND	3	/* send the start, if the lease holds */
#define LOOKED	4	/* the lease held: send it now */
#define WAIT	5	/* the agent has it, or it is on its way */

/* The check of the ownership. */
#define UNSURE	0
#define SENT	1
#define OWNER	2	/* the answer is on its way: this node is the owner */
#define SURE	3	/* the lease holds */

typedef Node {
	unsigned owns	: 1;	/* as far as it knows */
	unsigned check	: 2;
	unsigned left	: 2	/* ticks of the lease, counted from the sending of the check */
};

typedef Doing {
	unsigned task	: 3;
	unsigned asks	: 3	/* ticks until a start that the agent does not know is sent again */
};

typedef Task {
	unsigned log	 : 2;
	unsigned transit : 2;	/* one more than the ticks in which the message must have arrived; 0 if there is none */
	unsigned known	 : 1;	/* the agent has the start */
	unsigned runs	 : 2	/* how many messages with the start it has received */
};

Node node[3];
Doing doing[6];	/* of a node and a task */
Task task[2];
byte epoch;	/* of the owner's record in the stream: one more than the number of the owner */

#define does(n, t) doing[2*(n)+(t)].task
#define asks(n, t) doing[2*(n)+(t)].asks

inline forget(n) {
	node[n].owns = 0; node[n].check = UNSURE; node[n].left = 0;
	does(n, 0) = IDLE; asks(n, 0) = 0; does(n, 1) = IDLE; asks(n, 1) = 0
}

/* What a new owner does with a task that it finds. */
inline find(n, t) {
	if
	:: task[t].log == QUEUED -> does(n, t) = QUEUE
#ifdef RESEND_WITHOUT_ASKING
	:: task[t].log == ACCEPTED -> does(n, t) = SEND
#else
	:: task[t].log == ACCEPTED -> does(n, t) = ASK; asks(n, t) = RESEND
#endif
	:: else -> does(n, t) = IDLE
	fi
}

/* The append of a new state; next is what follows. */
inline append(n, t, state, next) {
	if
	:: epoch == n + 1 -> task[t].log = state; does(n, t) = next
	:: else -> forget(n)	/* fenced */
	fi
}

inline arrive(t) {
	task[t].transit = 0; task[t].known = 1; task[t].runs++;
	assert(task[t].runs <= 1)
}

inline act(n, t) {
	if
	:: task[t].transit > 0 -> arrive(t)	/* another one is on its way, and may be faster */
	:: else
	fi;
	task[t].transit = TRANSIT + 1
}

#define holds(n) (node[n].check == SURE)
#ifdef NO_LOOK
#define may_act(n) 1
#else
#define may_act(n) holds(n)
#endif

#ifdef LAGGING_READ
#define isOwner(n) (epoch == n + 1 || epoch == n + 2)	/* a follower may not have the last record yet */
#else
#define isOwner(n) (epoch == n + 1)
#endif

/* The tasks are alike, so task 0 may be the first one that is accepted. */
#define comes(t) (task[t].log == NONE && (t == 0 || task[0].log != NONE))

/* A caller sends the start, and sends it again if it was not accepted. The agent may have to wait for it. */
#ifdef ACT_BEFORE_APPEND
#define ACCEPT(n, t) \
	:: d_step { node[n].owns && does(n, t) == IDLE && comes(t) -> does(n, t) = SEND } \
	:: d_step { does(n, t) == QUEUE -> append(n, t, ACCEPTED, WAIT) }
#define after(t) (task[t].log == NONE -> QUEUE : WAIT)
#else
#define ACCEPT(n, t) \
	:: d_step { node[n].owns && does(n, t) == IDLE && comes(t) -> append(n, t, ACCEPTED, SEND) } \
	:: d_step { node[n].owns && does(n, t) == IDLE && comes(t) -> append(n, t, QUEUED, QUEUE) } \
	:: d_step { does(n, t) == QUEUE -> append(n, t, ACCEPTED, SEND) }
#define after(t) WAIT
#endif

/*
 * The look at the lease, and the act right after it. A process that is stopped just between them, for as long as its
 * lease holds and the next owner asks, is the one case in which a start may run twice: STOPPED shows that it is there.
 */
#ifdef STOPPED
#define ACT(n, t) \
	:: d_step { does(n, t) == SEND && may_act(n) -> does(n, t) = LOOKED } \
	:: d_step { does(n, t) == LOOKED -> act(n, t); does(n, t) = after(t) }
#else
#define ACT(n, t) \
	:: d_step { does(n, t) == SEND && may_act(n) -> act(n, t); does(n, t) = after(t) }
#endif

/* The work of an owner on a task. A connection to the agent that broke is as a new owner. */
#define WORK(n, t) \
	ACCEPT(n, t) \
	ACT(n, t) \
	:: d_step { does(n, t) == WAIT && task[t].transit == 0 && !task[t].known -> \
		does(n, t) = ASK; asks(n, t) = RESEND } \
	:: d_step { does(n, t) == ASK && !task[t].known && asks(n, t) == 0 -> does(n, t) = SEND } \
	:: d_step { (does(n, t) == WAIT || does(n, t) == ASK) && task[t].known -> \
		asks(n, t) = 0; append(n, t, ENDED, IDLE) }

proctype Owner(byte n) {
#ifdef RESUME_BEFORE_CLAIM
	d_step { epoch >= n -> find(n, 0); find(n, 1) }
	d_step { epoch == n -> epoch++; node[n].owns = 1 };
#else
	d_step { epoch == n -> epoch++; node[n].owns = 1; find(n, 0); find(n, 1) };
#endif
end:	do
	:: d_step { node[n].check == UNSURE && (does(n, 0) == SEND || does(n, 1) == SEND) ->
		node[n].check = SENT; node[n].left = LEASE }
	:: d_step { node[n].check == SENT ->
		if
		:: isOwner(n) -> node[n].check = OWNER
		:: else -> forget(n)
		fi }
	:: d_step { node[n].check == OWNER ->
#ifdef LEASE_FROM_ANSWER
		node[n].left = LEASE;
#endif
		node[n].check = (node[n].left > 0 -> SURE : UNSURE) }
	WORK(n, 0)
	WORK(n, 1)
	od
}

/* The message to the agent arrives, or is lost. */
#define DELIVERY(t) \
	:: d_step { task[t].transit > 0 -> arrive(t) } \
	:: task[t].transit > 0 -> task[t].transit = 0

#define less(x) x = (x > 0 -> x - 1 : 0)

#define pass(n) less(asks(n, 0)); less(asks(n, 1)); less(node[n].left); \
	node[n].check = (node[n].check == SURE && node[n].left == 0 -> UNSURE : node[n].check)

#define counts(n) (node[n].left + asks(n, 0) + asks(n, 1) > 0)
#define over(t) (task[t].log == NONE || task[t].log == ENDED)

proctype World() {
end:	do
	DELIVERY(0)
	DELIVERY(1)
	:: d_step { task[0].transit != 1 && task[1].transit != 1 &&
		(counts(0) || counts(1) || counts(2) || task[0].transit + task[1].transit > 0) ->
		less(task[0].transit); less(task[1].transit);
		pass(0); pass(1); pass(2) }
	/* Nothing can happen any more: all that was accepted has ended. */
	:: timeout -> assert(over(0) && over(1)); break
	od
}

init {
	atomic { run Owner(0); run Owner(1); run Owner(2); run World() }
}
