// Package page serves the web page of a hub from files that are embedded in the binary: plain ES modules and a style sheet, with no
// build step and nothing from elsewhere.
//
// The page is a client of the REST API like any other. It holds no data and needs no token: what somebody sees and may do is what the
// API answers to the token that they sign in with, so the files are served to everybody.
//
//   - page.go: the handler and its headers; package stored has validators and compression.
//   - assets: the page. app.js starts it and routes; api.js and live.js talk to the API; dom.js makes elements, from text only.
package page
