// Package stream sends typed changes of members' objects as an iterator: each reader at its own pace, and no reader slows a member.
//
//	stream.go   one use: a source for each member, and the reader that empties the backlogs
//	backlog.go  what a slow reader gets: the newest state, and that some were skipped
package stream
