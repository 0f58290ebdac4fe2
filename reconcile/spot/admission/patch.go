package admission

import "encoding/json"

// patch builds a JSON patch (RFC 6902) by appending to a byte slice. Paths must be free of characters that JSON escapes;
// those made of label keys are.
type patch struct {
	b     []byte
	start int
}

// add sets a string.
func (p *patch) add(path, value string) {
	p.open("add", path)
	p.b = append(p.b, `,"value":`...)
	p.b = appendString(p.b, value)
	p.b = append(p.b, '}')
}

// addRaw sets a value that is JSON already.
func (p *patch) addRaw(path, value string) {
	p.open("add", path)
	p.b = append(p.b, `,"value":`...)
	p.b = append(p.b, value...)
	p.b = append(p.b, '}')
}

// addMap makes a map where there is none, of pairs of key and value; pairs with an empty value are left out.
func (p *patch) addMap(path string, pairs ...string) {
	p.open("add", path)
	p.b = append(p.b, `,"value":{`...)
	first := true
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if !first {
			p.b = append(p.b, ',')
		}
		first = false
		p.b = appendString(p.b, pairs[i])
		p.b = append(p.b, ':')
		p.b = appendString(p.b, pairs[i+1])
	}
	p.b = append(p.b, `}}`...)
}

// set brings the value of a key in a map that is there to what is wanted; empty: none.
func (p *patch) set(has map[string]string, key, path, wanted string) {
	switch old, there := has[key]; {
	case wanted != "" && old != wanted:
		p.add(path, wanted)
	case wanted == "" && there:
		p.remove(path)
	}
}

func (p *patch) remove(path string) {
	p.open("remove", path)
	p.b = append(p.b, '}')
}

func (p *patch) open(op, path string) {
	if len(p.b) == p.start {
		p.b = append(p.b, '[')
	} else {
		p.b = append(p.b, ',')
	}
	p.b = append(p.b, `{"op":"`...)
	p.b = append(p.b, op...)
	p.b = append(p.b, `","path":"`...)
	p.b = append(p.b, path...)
	p.b = append(p.b, '"')
}

// done closes the patch and returns the bytes; without an operation they are as they were.
func (p *patch) done() []byte {
	if len(p.b) > p.start {
		p.b = append(p.b, ']')
	}
	return p.b
}

// appendString appends a JSON string.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil { // never for a string
				return append(b, `""`...)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
