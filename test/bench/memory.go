package main

import "context"

// memory is what the hub has resident after the bursts, as it is: nobody asks it to collect garbage.
func (b *bench) memory(context.Context) error {
	bytes, err := b.hub.RSS()
	if err != nil {
		return err
	}
	b.report.Record("hub-rss-mb", float64(bytes)/1e6)
	return nil
}
