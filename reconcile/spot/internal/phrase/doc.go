// Package phrase writes the words of messages, and reads the numbers that people write.
//
//   - phrase.go: all of it.
package phrase
