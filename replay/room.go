// SPDX-License-Identifier: Apache-2.0

package replay

import "context"

// Room is called by Store.Follow before it holds about n bytes of records, where these are more than some KiB. It may wait,
// and the follower holds nothing meanwhile. An error ends the following. With n 0 they are held no longer.
type Room func(ctx context.Context, n int) error

type roomKey struct{}

// WithRoom returns a context whose followers ask for room.
func WithRoom(ctx context.Context, room Room) context.Context {
	return context.WithValue(ctx, roomKey{}, room)
}

// RoomOf returns the Room of a context, or one that is without bounds.
func RoomOf(ctx context.Context) Room {
	if room, ok := ctx.Value(roomKey{}).(Room); ok {
		return room
	}
	return func(context.Context, int) error { return nil }
}
