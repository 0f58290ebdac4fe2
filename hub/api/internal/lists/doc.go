// Package lists is what lists and watches are asked with: a filter, an order, a page, and the fields that are shown.
//
// filter.go compiles filters (filter_enums.go: enumerations as people write them, filter_equality.go:
// comparisons that would cost too much), order.go order_by, page.go page tokens, mask.go read masks. It knows messages and no service.
package lists
