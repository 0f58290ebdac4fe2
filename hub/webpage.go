package hub

import (
	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/page"
)

// newPage is the web page that is served beside REST; nil: none.
func newPage(c *config.APIConfig) (api.Page, error) {
	if !c.Page {
		return nil, nil
	}
	return page.New()
}
