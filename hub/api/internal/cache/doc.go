// Package cache holds answers for a short time, and no more of them than it is configured to. cache.go is all of it.
package cache
