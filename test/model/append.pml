// SPDX-License-Identifier: Apache-2.0

/*
 * Appends: what the owners of a shard write to its stream. See doc.go.
 *
 * The stream does one thing after the other, as its leader with a quorum does. The requests of a node may be lost,
 * answered in vain, or carried out after the node has given them up.
 */

#define OWNERS	3	/* how often the shard is claimed: by each node once. One that claims again remembers nothing */
#define COMMANDS 4	/* command 0, a drop and command 1 are for log 0, in this order; command 3 is for log 1 */
#define DROP	2
#define log_of(c) ((c) == 3)

typedef Append {
	bool is;	/* there is one */
	byte command;
	byte owner;	/* the sequence of the record of the owner that sends it */
	byte last	/* the last sequence of the stream that it expects */
};

typedef Node {
	byte owner;	/* the sequence of its owner's record; 0 if it owns nothing as far as it knows */
	bool done;	/* it has owned the shard */
	byte last;	/* the last sequence of the stream, as it knows it */
	byte has;	/* the commands that are in the logs, as it knows them: a bit for each */
	Append now;	/* what it waits for */
	byte answer;	/* on its way to the node: none, 1 for done, 2 for refused */
	bool doubt;	/* it has sent the append more than once */
	Append late	/* an earlier copy that is on its way still */
};

Node node[OWNERS];

/* The stream. */
byte last = 1;		/* its last sequence */
byte head[2];		/* the last ones of the logs */
byte owner = 1;		/* the sequence of the owner's record */
byte epoch = 1;		/* which it has in it */
byte at[COMMANDS];	/* the sequence of the record of a command; 0 if it is not there */
byte appended[COMMANDS];	/* how often it was appended */
byte dropped;		/* the sequence of the tombstone of log 0 */
bool purge;		/* a purge of log 0 is on its way; it says up to which sequence */
byte by[OWNERS+2];	/* who has appended in an epoch, and one more */

/* What the callers have. */
byte acknowledged;	/* a bit for each command */

#define bit(c) (1 << (c))
#define has(set, c) (((set) & bit(c)) != 0)

/* What an append expects. */
#ifdef NO_EPOCH
#define expected(what, x) (head[log_of(what)] <= x)	/* that its log has not changed, whoever owns the shard */
#else
#define expected(what, x) (last == x)
#endif

#if defined(NO_EPOCH) || defined(NOT_IN_A_BATCH)
#define fenced true
#define all 0	/* it is no mistake that some are given up */
#else
#define fenced (!my_record)
#define all 15
#endif

/* The stream carries an append out, or refuses it. */
inline carryOut(n, what, expects, result) {
	if
	:: expected(what, expects) ->
		last++;
		head[log_of(what)] = last;
		at[what] = last;
		appended[what]++;
		assert(appended[what] == 1);
		assert(by[epoch] == 0 || by[epoch] == n + 1);	/* at most one owner appends in an epoch */
		by[epoch] = n + 1;
		if
		:: what == DROP -> dropped = at[DROP]; at[0] = 0; purge = 1
		:: else
		fi;
		result = 1
	:: else -> result = 2
	fi
}

/* A command comes after those that it needs. */
#define comes(c) (c == 0 || c == 3 || c == DROP && has(node[n].has, 0) || c == 1 && has(node[n].has, DROP))

inline forget() {
	node[n].owner = 0; node[n].last = 0; node[n].has = 0; node[n].doubt = 0; node[n].answer = 0;
	node[n].now.is = 0; node[n].now.command = 0; node[n].now.owner = 0; node[n].now.last = 0
}

#define cmd node[n].now.command

inline acknowledge() {
	node[n].last = node[n].now.last + 1;
	node[n].has = node[n].has | bit(cmd);
	acknowledged = acknowledged | bit(cmd);
	/* One order: it stands where its owner believes it to be. */
#ifndef NO_EPOCH
	assert(at[cmd] == node[n].now.last + 1 || cmd == 0 && dropped > 0);
#endif
	node[n].now.is = 0; node[n].now.command = 0; node[n].now.owner = 0; node[n].now.last = 0; node[n].doubt = 0;
	node[n].answer = 0
}

inline load() {
#ifdef LAST_AS_READ
	node[n].last = last;	/* and not that of its own record: it may be that of the next owner's */
#endif
	node[n].has = (appended[0] > 0) | ((appended[1] > 0) << 1) | ((appended[2] > 0) << 2) | ((appended[3] > 0) << 3);
	acknowledged = acknowledged | node[n].has	/* their callers send them again */
}

/* A caller sends a command to the owner: for the first time, or again. What the log has is not appended again. */
#define COMMAND(c, ahead) \
	:: d_step { node[n].owner > 0 && !node[n].now.is && comes(c) && !has(node[n].has, c) -> \
		node[n].now.is = 1; node[n].now.command = c; \
		node[n].now.owner = node[n].owner; node[n].now.last = node[n].last + ahead }

#define again(n) node[n].late.is = 1; node[n].late.command = node[n].now.command; \
	node[n].late.owner = node[n].now.owner; node[n].late.last = node[n].now.last

#define lose(n) node[n].late.is = 0; node[n].late.command = 0; node[n].late.owner = 0; node[n].late.last = 0

#define my_record (owner == node[n].now.owner)

inline claim() {
	last++; owner = last; epoch = number + 1;
	node[n].owner = owner; node[n].last = last; node[n].done = 1; seen = 0; number = 0
}

proctype Owner(byte n) {
	byte seen, number;	/* the owner's record before */
	/* A claim: reads the owner's record, and writes the next one. */
#ifdef HEARTBEAT_AS_SAFETY
	/* The owner before was not heard of for long enough: it is dead, and this node goes on for it. */
	d_step { n == 0 || node[n-1].done -> node[n].done = 1; last = last + (n == 0);
		owner = (n == 0 -> last : owner); node[n].owner = owner; node[n].last = last; epoch = epoch + (n == 0); load() };
#else
	d_step { n == 0 || node[n-1].done || owner >= n -> seen = owner; number = epoch };
claims:	if
#ifdef CLAIM_WITHOUT_CAS
	:: d_step { true -> claim() }
#else
	:: d_step { owner == seen -> claim() }
	:: d_step { owner != seen -> seen = owner; number = epoch }; goto claims
#endif
	fi;
	d_step { load() };
#endif
end:	do
	COMMAND(0, 0)
	COMMAND(1, 0)
	COMMAND(2, 0)
	COMMAND(3, 0)
#ifdef NOT_IN_A_BATCH	/* it expects the sequence of the message before, without knowing that this one is written */
	COMMAND(0, 1)
	COMMAND(3, 1)
#endif

	/* The stream has the append, and the answer is on its way; or is lost. */
	:: d_step { node[n].now.is && node[n].answer == 0 ->
		carryOut(n, cmd, node[n].now.last, node[n].answer) }

	/* No answer came. The append may be lost, carried out, or be carried out later. */
#ifdef NEW_NUMBER
	:: d_step { node[n].now.is && !node[n].late.is && !node[n].doubt && owner == node[n].owner -> again(n);
		node[n].answer = 0; node[n].doubt = 1; node[n].now.last = last }
#else
	:: d_step { node[n].now.is && !node[n].late.is && !node[n].doubt -> again(n); node[n].answer = 0; node[n].doubt = 1 }
#endif
	:: d_step { node[n].late.is ->
		carryOut(n, node[n].late.command, node[n].late.last, seen); seen = 0; lose(n) }
	:: d_step { node[n].late.is -> lose(n) }

	:: d_step { node[n].answer == 1 -> acknowledge() }
	/* Refused: it was carried out before, and is where it must be; or by the fence. The leader says which. */
	:: d_step { node[n].answer == 2 ->
		if
		:: at[cmd] == node[n].now.last + 1 -> acknowledge()
#ifdef NOT_IN_A_BATCH
		:: at[cmd] != node[n].now.last + 1 && my_record && !node[n].doubt -> node[n].now.is = 0; node[n].answer = 0
#endif
		:: else -> assert(fenced); forget()
		fi }
	od
}

/* No acknowledged append is lost: it is in its log, until that is dropped. */
#define kept(c) (!has(acknowledged, c) || at[c] > 0 || c == 0 && dropped > 0)

/* A purge may come late. */
proctype Purge() {
end:	do
	:: d_step { purge ->
#ifdef PURGE_WITHOUT_SEQUENCE
		at[0] = 0; at[1] = 0;
#else
		at[0] = (at[0] < dropped -> 0 : at[0]); at[1] = (at[1] < dropped -> 0 : at[1]);
#endif
		assert(kept(0) && kept(1) && kept(2) && kept(3));
		purge = 0 }
	:: d_step { purge -> purge = 0 }	/* it is lost */
	/* Nothing can happen any more. */
	:: timeout -> assert(acknowledged >= all && kept(0) && kept(1) && kept(2) && kept(3)); break
	od
}

init {
	atomic { run Owner(0); run Owner(1); run Owner(2); run Purge() }
}
