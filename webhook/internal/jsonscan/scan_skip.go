package jsonscan

// skipNumber takes a number.
func (s *Scanner) skipNumber() {
	if s.pos < len(s.Data) && s.Data[s.pos] == '-' {
		s.pos++
	}
	if s.pos < len(s.Data) && s.Data[s.pos] == '0' {
		s.pos++
	} else {
		s.digits()
	}
	if s.pos < len(s.Data) && s.Data[s.pos] == '.' {
		s.pos++
		s.digits()
	}
	if s.pos < len(s.Data) && (s.Data[s.pos] == 'e' || s.Data[s.pos] == 'E') {
		s.pos++
		if s.pos < len(s.Data) && (s.Data[s.pos] == '+' || s.Data[s.pos] == '-') {
			s.pos++
		}
		s.digits()
	}
}

// digits takes one or more of them.
func (s *Scanner) digits() {
	start := s.pos
	for s.pos < len(s.Data) && '0' <= s.Data[s.pos] && s.Data[s.pos] <= '9' {
		s.pos++
	}
	if s.pos == start {
		s.fail(errSyntax)
	}
}

// Skip takes any value.
func (s *Scanner) Skip() {
	switch c := s.peek(); c {
	case '"':
		s.skipString()
	case '{', '[':
		if s.depth++; s.depth > maxDepth {
			s.fail(errDepth)
			return
		}
		s.pos++
		if c == '{' {
			s.skipFields()
		} else {
			s.skipItems()
		}
		s.depth--
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	default:
		s.skipNumber()
	}
}

// skipFields takes the rest of an object.
func (s *Scanner) skipFields() {
	if s.peek() == '}' {
		s.pos++
		return
	}
	for {
		if s.peek() != '"' {
			s.fail(errSyntax)
			return
		}
		s.skipString()
		if s.peek() != ':' {
			s.fail(errSyntax)
			return
		}
		s.pos++
		s.Skip()
		if s.last('}') {
			return
		}
	}
}

// skipItems takes the rest of an array.
func (s *Scanner) skipItems() {
	if s.peek() == ']' {
		s.pos++
		return
	}
	for {
		s.Skip()
		if s.last(']') {
			return
		}
	}
}

// last takes what follows a value: a comma, or the end of what the value is in. It is true at the end, or after an error.
func (s *Scanner) last(closing byte) bool {
	s.rest()
	switch s.peek() {
	case ',':
		s.pos++
		return false
	case closing:
		s.pos++
	default:
		s.fail(errSyntax)
	}
	return true
}
