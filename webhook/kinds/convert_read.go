package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// maxObject is the largest object that is converted, in bytes; Kubernetes' own limit for an object is half of it.
	maxObject = 3 << 20
	// readAhead is how many bytes the decoder may read beyond the value that it decodes.
	readAhead = 64 << 10
)

var (
	errNoReview = errors.New("the body is not a ConversionReview")
	errUnread   = errors.New("the body is incomplete")
	errTooLarge = fmt.Errorf("a value: must have at most %d bytes", maxObject)
)

// conversionReader reads a ConversionReview object by object, so that one that is refused has cost one object and not the
// whole review. It needs the fields in the order in which API servers write them: what says how to convert comes before the
// objects.
type conversionReader struct {
	body    boundedReader
	decoder *json.Decoder

	apiVersion, kind       string
	uid, desiredAPIVersion string
	requested, haveObjects bool
	skipped                json.RawMessage // the last field that says nothing to us; its memory is used again
	each                   func(c *conversionReader, i int, object []byte) error
}

// readConversion calls each for the objects in their order, and ends with the first error; each may keep the object. The returned
// reader's fields are valid even after an error.
func readConversion(body io.Reader, each func(c *conversionReader, i int, object []byte) error) (*conversionReader, error) {
	c := &conversionReader{body: boundedReader{from: body}, each: each}
	c.decoder = json.NewDecoder(&c.body)
	if err := c.fields(c.top); err != nil {
		return c, err
	}
	c.allowValue()
	if _, err := c.decoder.Token(); !errors.Is(err, io.EOF) {
		return c, errNoReview
	}
	return c, c.check()
}

// check says what is wrong with a review as far as it was read.
func (c *conversionReader) check() error {
	if c.apiVersion != conversionVersion || c.kind != "ConversionReview" || !c.requested {
		return fmt.Errorf("%.64q %.64q: must be a ConversionReview of %s with a request", c.apiVersion, c.kind, conversionVersion)
	}
	return nil
}

func (c *conversionReader) top(field string) error {
	switch field {
	case "apiVersion":
		return c.value(&c.apiVersion)
	case "kind":
		return c.value(&c.kind)
	case "request":
		c.requested = true
		return c.fields(c.request)
	}
	return c.value(&c.skipped)
}

func (c *conversionReader) request(field string) error {
	switch field {
	case "uid":
		return c.value(&c.uid)
	case "desiredAPIVersion":
		return c.value(&c.desiredAPIVersion)
	case "objects":
		if c.haveObjects {
			return errors.New("request.objects: must be set exactly once")
		}
		c.haveObjects = true
		if err := c.check(); err != nil {
			return err
		}
		if c.desiredAPIVersion == "" {
			return errors.New("request.desiredAPIVersion: must come before request.objects")
		}
		return c.objects()
	}
	return c.value(&c.skipped)
}

func (c *conversionReader) objects() error {
	if opens, err := c.open('['); err != nil || !opens {
		return err
	}
	for i := 0; c.more(); i++ {
		var object json.RawMessage // memory of its own: a conversion may return it, or a part of it
		if err := c.value(&object); err != nil {
			return fmt.Errorf("objects[%d]: %w", i, err)
		}
		if err := c.each(c, i, object); err != nil {
			return err
		}
	}
	return c.end()
}

// fields calls each with the names of an object's fields; it reads the values.
func (c *conversionReader) fields(each func(name string) error) error {
	if opens, err := c.open('{'); err != nil || !opens {
		return err
	}
	for c.more() {
		c.allowValue()
		name, err := c.decoder.Token()
		if err != nil {
			return c.failure(err)
		}
		text, _ := name.(string) // the decoder takes nothing else for a name
		if err := each(text); err != nil {
			return err
		}
	}
	return c.end()
}

// open goes past the beginning of an object or a list; false: it is null.
func (c *conversionReader) open(with json.Delim) (bool, error) {
	c.allowValue()
	token, err := c.decoder.Token()
	switch {
	case err != nil:
		return false, c.failure(err)
	case token == nil:
		return false, nil
	case token != with:
		return false, errNoReview
	}
	return true, nil
}

// more reports whether a list or an object goes on. It is false as well where the body cannot be read further; end then returns why.
func (c *conversionReader) more() bool {
	c.allowValue()
	return c.decoder.More()
}

func (c *conversionReader) end() error {
	c.allowValue()
	_, err := c.decoder.Token()
	return c.failure(err)
}

func (c *conversionReader) value(into any) error {
	c.allowValue()
	return c.failure(c.decoder.Decode(into))
}

// failure is what an error means to the sender: the decoder's own words quote what it read.
func (c *conversionReader) failure(err error) error {
	switch {
	case err == nil || errors.Is(err, errTooLarge):
		return err
	case c.body.failed != nil:
		return fmt.Errorf("%w: %w", errUnread, c.body.failed)
	}
	return errNoReview
}

// allowValue lets the decoder read one more value.
func (c *conversionReader) allowValue() {
	c.body.left = c.decoder.InputOffset() + maxObject + readAhead - c.body.read
}

// boundedReader fails when more is read than is allowed: a decoder keeps all that it has read of a value.
type boundedReader struct {
	from       io.Reader
	read, left int64
	failed     error // of from, but for its end
}

// Read reads what is left at most.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left, readAhead)])
	b.read += int64(n)
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}
