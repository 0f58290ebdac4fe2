// Package paging reads live lists of members page by page. paging.go is all of it.
package paging
