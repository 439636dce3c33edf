// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/task"
)

// Clients publish keys by which others could encrypt to their devices. SDKs do so after they have connected, and one
// that is refused reads nothing of its inbox. The gateway keeps the keys, and shows them to the devices of the same
// AID. It has no agent's key, and does not split messages encrypted for several devices: of any other AID there are no
// keys, so SDKs know that they cannot encrypt.

// The limits of the keys of an AID. They are written with each message.
const (
	maxKeys = 16   // the oldest is forgotten
	maxKey  = 2048 // bytes of one
)

// deviceKey is a key of a device, as the client has published it.
type deviceKey struct {
	Device string          `json:"device,omitempty"`
	Slot   string          `json:"slot,omitempty"`
	Old    bool            `json:"old,omitempty"` // by message.e2ee.put_prekey, for SDKs before 0.3
	Key    json.RawMessage `json:"key"`
}

// putKey is message.v2.put_peer_pk, and the old message.e2ee.put_prekey.
func (m *Mailbox) putKey(ctx context.Context, c Caller, params gjson.Result, old bool) ([]byte, error) {
	if err := checkDevice(c, params); err != nil {
		return nil, err
	}
	if of := params.Get("peer_aid"); of.Exists() && of.String() != c.AID {
		return nil, invalid("peer_aid must be your own, %s", c.AID)
	}
	if len(params.Raw) > maxKey {
		return nil, invalid("the key has %d bytes, and at most %d are allowed", len(params.Raw), maxKey)
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal([]byte(params.Raw), &members) // anything but an object has none
	delete(members, "device_id")
	delete(members, "slot_id")
	if len(members) == 0 {
		return nil, invalid("the params must be an object with the key")
	}
	text, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	key := deviceKey{c.Device, c.Slot, old, text}
	err = m.with(c.AID, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		i := slices.IndexFunc(b.meta.Keys, key.replaces)
		if i >= 0 && string(b.meta.Keys[i].Key) == string(key.Key) {
			return nil // SDKs publish it at each connection
		}
		keys := slices.DeleteFunc(slices.Clone(b.meta.Keys), key.replaces)
		b.meta.Keys = append(keys[max(len(keys)+1-maxKeys, 0):], key)
		return b.append(ctx, nil)
	})
	return []byte(`{"ok":true}`), err
}

// replaces reports whether a key takes the place of another one.
func (k *deviceKey) replaces(other deviceKey) bool {
	return k.Device == other.Device && k.Slot == other.Slot && k.Old == other.Old
}

// keysOf returns the AID of the keys a call asks for.
func keysOf(params gjson.Result, name string) (string, error) {
	aid, err := aun.ParseAID(params.Get(name).String())
	if err != nil {
		return "", invalid("%s: %v", name, err)
	}
	return string(aid), nil
}

// bootstrap is message.v2.bootstrap.
func (m *Mailbox) bootstrap(ctx context.Context, c Caller, params gjson.Result) ([]byte, error) {
	aid, err := keysOf(params, "peer_aid")
	if err != nil {
		return nil, err
	}
	keys, err := m.ownKeys(ctx, c, aid, false)
	if err != nil {
		return nil, err
	}
	result := task.AppendString([]byte(`{"peer_aid":`), aid)
	return append(append(append(result, `,"peer_devices":`...), keys...), '}'), nil
}

// prekeys is message.e2ee.get_prekey.
func (m *Mailbox) prekeys(ctx context.Context, c Caller, params gjson.Result) ([]byte, error) {
	aid, err := keysOf(params, "aid")
	if err != nil {
		return nil, err
	}
	keys, err := m.ownKeys(ctx, c, aid, true)
	if err != nil || len(keys) == len("[]") {
		return []byte(`{"found":false}`), err
	}
	return append(append([]byte(`{"found":true,"device_prekeys":`), keys...), '}'), nil
}

// ownKeys returns the keys of an AID as a list in JSON, empty for any AID but the caller's own.
func (m *Mailbox) ownKeys(ctx context.Context, c Caller, aid string, old bool) (list []byte, err error) {
	if aid != c.AID {
		return []byte("[]"), nil
	}
	err = m.with(aid, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		list = []byte{'['}
		for _, k := range b.meta.Keys {
			if k.Old != old {
				continue
			}
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, k.Key[:len(k.Key)-1]...)
			list = append(task.AppendString(append(list, `,"device_id":`...), k.Device), '}')
		}
		list = append(list, ']')
		return nil
	})
	return list, err
}
