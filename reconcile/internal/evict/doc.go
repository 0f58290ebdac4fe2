// Package evict finds which of many items goes when there are too many, so that nobody's items push out those of somebody with fewer.
//
//	items.go    the items, by caller and group
//	ranking.go  a heap whose entries move when they change
package evict
