// SPDX-License-Identifier: Apache-2.0

package task

// entrySize is the approximate memory of an entry of a list beside its content, in bytes.
const entrySize = 128

// Size returns the approximate size of a task in memory, or in any dialect, in bytes.
func (t *Task) Size() int64 {
	n := entrySize + statusSize(&t.Status) +
		int64(len(t.ID)+len(t.SenderID)+len(t.GroupID)+len(t.SessionID)+len(t.Extensions))
	for i := range t.Products {
		p := &t.Products[i]
		n += entrySize + int64(len(p.ID)+len(p.Name)+len(p.Description)+len(p.Extensions)) + itemsSize(p.DataItems)
	}
	for i := range t.MessageHistory {
		n += t.MessageHistory[i].Size()
	}
	for i := range t.StatusHistory {
		n += statusSize(&t.StatusHistory[i])
	}
	return n
}

// Size returns the approximate size of the fold in memory, in bytes.
func (f *Fold) Size() int64 {
	n := f.Task().Size() + (&Task{Products: f.Withdrawn}).Size()
	for _, texts := range []*Texts{&f.texts, &f.said.texts} {
		for _, g := range texts.growing {
			n += int64(g.text.Cap() - g.text.Len())
		}
	}
	return n
}

// Size returns the approximate size of a message in memory, or in any dialect, in bytes.
func (m *Message) Size() int64 {
	n := entrySize + int64(len(m.ID)+len(m.SenderID)+len(m.TaskID)+len(m.GroupID)+len(m.SessionID)+
		len(m.Params)+len(m.Extensions))
	for _, list := range [...][]string{m.Mentions, m.References} {
		for _, s := range list {
			n += entrySize + int64(len(s))
		}
	}
	return n + itemsSize(m.DataItems)
}

func statusSize(s *Status) int64 {
	return entrySize + int64(len(s.Extensions)+len(s.TaskExtensions)) + itemsSize(s.DataItems)
}

func itemsSize(items []DataItem) (n int64) {
	for i := range items {
		it := &items[i]
		n += entrySize + int64(len(it.Text)+len(it.Name)+len(it.MIMEType)+len(it.URI)+len(it.Bytes)+
			len(it.Data)+len(it.Metadata))
	}
	return n
}
