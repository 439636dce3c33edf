// SPDX-License-Identifier: Apache-2.0

package translate

// Facets are the facets of a Client; nil for each missing one. The Client of one request (Client.For) has the same
// ones.
type Facets struct {
	Getter          Getter
	Canceler        Canceler
	SessionCanceler SessionCanceler
	Resubscriber    Resubscriber
	Completer       Completer
	Registrar       Registrar
	Describer       Describer
	Activator       Activator

	Binder       Binder
	Mounted      Mounted
	StatusReader StatusReader
	Locator      Locator

	Namer         Namer
	Renamer       Renamer
	SessionNamer  SessionNamer
	SessionTeller SessionTeller

	Unstreamer Unstreamer
	Forgetter  Forgetter
	Streamer   Streamer
	Repeater   Repeater
	LateActor  LateActor
	Restater   Restater
	Resender   Resender
}

// FacetsOf returns the facets of a Client. Nothing else asks for the facets of a Client.
func FacetsOf(c Client) (f Facets) {
	f.Getter, _ = c.(Getter)
	f.Canceler, _ = c.(Canceler)
	f.SessionCanceler, _ = c.(SessionCanceler)
	f.Resubscriber, _ = c.(Resubscriber)
	f.Completer, _ = c.(Completer)
	f.Registrar, _ = c.(Registrar)
	f.Describer, _ = c.(Describer)
	f.Activator, _ = c.(Activator)
	f.Binder, _ = c.(Binder)
	f.Mounted, _ = c.(Mounted)
	f.StatusReader, _ = c.(StatusReader)
	f.Locator, _ = c.(Locator)
	f.Namer, _ = c.(Namer)
	f.Renamer, _ = c.(Renamer)
	f.SessionNamer, _ = c.(SessionNamer)
	f.SessionTeller, _ = c.(SessionTeller)
	f.Unstreamer, _ = c.(Unstreamer)
	f.Forgetter, _ = c.(Forgetter)
	f.Streamer, _ = c.(Streamer)
	f.Repeater, _ = c.(Repeater)
	f.LateActor, _ = c.(LateActor)
	f.Restater, _ = c.(Restater)
	f.Resender, _ = c.(Resender)
	return f
}
