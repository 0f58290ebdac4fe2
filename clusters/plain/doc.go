// Package plain makes text that members, tenants and callers write harmless before it is shown: in logs, conditions, Events,
// metrics and answers of the API.
//
// text.go is about texts, log.go about the records of a log.
package plain
