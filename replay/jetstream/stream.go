// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	// requestLimit is the longest time for one request to a server. Then the request is repeated. The client would wait as
	// long as the context of the request lasts.
	requestLimit = 2 * time.Second
	// retryPause is the wait before a request is repeated.
	retryPause = 50 * time.Millisecond
	// frame is the room in a message beside its data, for headers.
	frame = 512
)

// stream is the stream of one shard. This process or another node owns the shard.
type stream struct {
	*Streams
	shard        int
	name         string
	prefix       string // of subjects
	live         string // of the subjects of republished messages
	ownerSubject string
	batchSubject string
	fenceSubject string
	markSubject  string
	remote       *logs

	mu       sync.Mutex
	followed map[string]*followed // logs with readers
	local    *Store               // opened by this process; nil for none
	opening  bool                 // this process opens a store
	standby  *standby             // nil for none
	wanted   bool                 // a standby, while this process has no store
	record   Owner                // the owner's record read or written last,
	marked   uint64               // and its mark, see ownerRecord
	watched  int                  // number of logs followed while another node owns the shard
	checks   *time.Timer          // until the next check; nil if no log is watched

	round        int    // of the checks
	checked      uint64 // the last batch seen by a check
	checkedWhole uint64 // the same of the last check of all heads
}

func newStream(s *Streams, shard int) *stream {
	c := s.config
	st := &stream{Streams: s, shard: shard, name: c.stream(shard), prefix: c.subjects(shard), live: c.live(shard),
		followed: make(map[string]*followed)}
	st.ownerSubject, st.batchSubject, st.fenceSubject = st.prefix+"owner", st.prefix+"batch", st.prefix+"fence"
	st.markSubject = st.prefix + "mark"
	st.remote = &logs{st}
	return st
}

// message is one message of the stream.
type message struct {
	subject string
	seq     uint64
	data    []byte
}

var errNoMessage = errors.New("there is no such message")

// getRequest asks for a message by its sequence, or for the last one of a subject, or for the first one from a sequence
// on at a subject.
type getRequest struct {
	Seq  uint64 `json:"seq,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
}

// apiError is the form of an error in the API of JetStream.
type apiError struct {
	Error *jetstream.APIError `json:"error"`
}

// get asks the leader of the stream. The leader knows everything it has acknowledged. The error is errNoMessage, the
// one of ctx, or an ErrUnavailable.
func (st *stream) get(ctx context.Context, r getRequest) (message, error) {
	var resp struct {
		apiError
		Message struct {
			Subject string `json:"subject"`
			Seq     uint64 `json:"seq"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	err := st.ask(ctx, "STREAM.MSG.GET.", r, &resp)
	var api *jetstream.APIError
	if errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeMessageNotFound {
		err = errNoMessage
	}
	return message{resp.Message.Subject, resp.Message.Seq, resp.Message.Data}, err
}

// lastSequence returns the sequence of the last message that the stream has, or has had.
func (st *stream) lastSequence(ctx context.Context) (uint64, error) {
	var answer struct {
		State struct {
			Last uint64 `json:"last_seq"`
		} `json:"state"`
	}
	err := st.ask(ctx, "STREAM.INFO.", struct{}{}, &answer)
	return answer.State.Last, err
}

// last returns the last message of a subject.
func (st *stream) last(ctx context.Context, subject string) (message, error) {
	return st.get(ctx, getRequest{Last: subject})
}

// ask sends a request to the API of JetStream until it is answered. The error is the one of ctx, a *jetstream.APIError,
// or an ErrUnavailable when the time of Config.GiveUp is over.
func (st *stream) ask(ctx context.Context, what string, request any, answer any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, st.config.GiveUp)
	defer cancel()
	for {
		once, stop := context.WithTimeout(limited, requestLimit)
		m, err := st.nc.RequestWithContext(once, "$JS.API."+what+st.name, data)
		stop()
		if err == nil {
			var failed apiError
			if err = json.Unmarshal(m.Data, &failed); err == nil && failed.Error == nil {
				return json.Unmarshal(m.Data, answer)
			}
			if err == nil {
				if err = failed.Error; failed.Error.Code < 500 {
					return err
				}
			}
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return fmt.Errorf("the connection to NATS was closed: %w", replay.ErrClosed)
		}
		if pause(limited, retryPause) != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the stream %s does not answer: %w: %w", st.name, replay.ErrUnavailable, err)
		}
	}
}

// pause waits, or returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// direct returns messages at a subject from a sequence on, at most n, and about as many bytes. Any replica may answer,
// perhaps without the last ones. No messages are no error. An answer with a part lost on its way, as with the
// connection, ends before this part, with an error.
func (st *stream) direct(ctx context.Context, seq uint64, subject string, n, bytes int) (all []message, err error) {
	once, stop := context.WithTimeout(ctx, requestLimit)
	defer stop()
	found, err := jetstreamext.GetBatch(once, st.js, st.name, n, jetstreamext.GetBatchSeq(seq),
		jetstreamext.GetBatchSubject(subject), jetstreamext.GetBatchMaxBytes(bytes))
	if err != nil {
		return nil, err
	}
	last := uint64(0) // sequence of the message before, of this answer
	for m, err := range found {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			break
		}
		if err != nil {
			return all, err
		}
		if !comesAfter(m.Header, last) {
			return all, st.lostPart()
		}
		last = m.Sequence
		all = append(all, message{m.Subject, m.Sequence, m.Data})
	}
	return all, nil
}

// comesAfter reports whether a message of an answer is the one after that with a sequence; 0 for the first one.
func comesAfter(h nats.Header, last uint64) bool {
	return h.Get("Nats-Last-Sequence") == strconv.FormatUint(last, 10)
}

// lostPart returns the error for an answer with a part lost on its way.
func (st *stream) lostPart() error {
	return fmt.Errorf("a part of the answer is lost: %w", st.unavailable())
}

// subjects asks the leader for the subjects of messages, from the offset on, as many as it gives at once, and for their
// whole number. The error is an ErrUnavailable if the answer comes from a deposed leader, without a message that there
// must be.
func (st *stream) subjects(ctx context.Context, filter string, offset int, message uint64) (
	list map[string]uint64, all int, err error,
) {
	var answer struct {
		Total int `json:"total"`
		State struct {
			Last     uint64            `json:"last_seq"`
			Subjects map[string]uint64 `json:"subjects"`
		} `json:"state"`
	}
	err = st.ask(ctx, "STREAM.INFO.", struct {
		Filter string `json:"subjects_filter"`
		Offset int    `json:"offset"`
	}{filter, offset}, &answer)
	if err == nil && answer.State.Last < message {
		err = st.unavailable()
	}
	return answer.State.Subjects, answer.Total, err
}

// value is one value as it is written: at a subject, in one message or more.
type value struct {
	subject string
	parts   [][]byte // the first one goes last, with the number of the others
}

// newValue returns a value in messages of at most limit bytes of data each.
func newValue(subject string, data []byte, limit int) value {
	further := 0
	if room := limit - binary.MaxVarintLen32; len(data) > room {
		further = (len(data) - 1) / room
		limit = room
	}
	first := binary.AppendUvarint(nil, uint64(further))
	n := min(len(data), limit)
	v := value{subject: subject, parts: [][]byte{append(first, data[:n]...)}}
	for data = data[n:]; len(data) > 0; data = data[n:] {
		n = min(len(data), limit)
		v.parts = append(v.parts, data[:n])
	}
	return v
}

// whole returns the data of the value with the last message m.
func (st *stream) whole(ctx context.Context, m message) ([]byte, error) {
	further, n := binary.Uvarint(m.data)
	if n <= 0 || further >= m.seq {
		return nil, fmt.Errorf("the message %d of the stream %s: %w", m.seq, st.name, errDamaged)
	}
	data := m.data[n:]
	for i := range further {
		part, err := st.get(ctx, getRequest{Seq: m.seq - further + i})
		if err == nil && part.subject != partSubject(m.subject, int(i+1)) {
			err = errNoMessage
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			data = append(make([]byte, 0, (len(data)+1)*int(further+1)), data...)
		}
		data = append(data, part.data...)
	}
	return data, nil
}

// partSubject returns the subject of a further part of a value.
func partSubject(subject string, part int) string { return subject + "." + strconv.Itoa(part) }

// room returns the greatest number of bytes of data in a message.
func (st *stream) room() int { return int(st.nc.MaxPayload()) - frame }

// purge removes the messages at a subject older than a sequence.
func (st *stream) purge(ctx context.Context, subject string, before uint64) error {
	var answer struct{}
	return st.ask(ctx, "STREAM.PURGE.", struct {
		Seq    uint64 `json:"seq"`
		Filter string `json:"filter"`
	}{before, subject}, &answer)
}

// readHead returns the head of a log; ErrNotFound for none.
func (st *stream) readHead(ctx context.Context, log string) (head, error) {
	if log == "" || len(log) > replay.MaxName {
		return head{}, replay.ErrNotFound
	}
	for {
		m, err := st.last(ctx, st.headSubject(log))
		if errors.Is(err, errNoMessage) || err == nil && len(m.data) == 0 {
			return head{}, replay.ErrNotFound
		}
		if err != nil {
			return head{}, err
		}
		data, err := st.whole(ctx, m)
		if errors.Is(err, errNoMessage) {
			continue // it was replaced meanwhile
		}
		if err != nil {
			return head{}, err
		}
		h, err := parseHead(data)
		h.seq = m.seq
		return h, err
	}
}
