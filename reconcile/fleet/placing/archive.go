package placing

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/replay"
)

// archive is where the fleet's history is kept. It is read before it is written, and read again after an error. One thing is asked of it
// at a time.
type archive interface {
	read(ctx context.Context) (*replay.History, error)
	write(ctx context.Context, h *replay.History) error
	// String names it for messages.
	String() string
}

// archiveOf is the one that the options name; nil: no history is kept.
func archiveOf(o *Options) (archive, error) {
	switch {
	case o.History.Name != "" && o.HistoryFolder != "":
		return nil, errors.New("the fleet's history is kept in a ConfigMap or in a folder, not in both")
	case o.History.Name != "":
		return &configMapArchive{hub: o.Hub, name: o.History}, nil
	case o.HistoryFolder != "":
		return folderArchive{replay.Folder{Path: o.HistoryFolder}}, nil
	}
	return nil, nil //nolint:nilnil // there is none
}

// folderArchive is a folder that somebody has made.
type folderArchive struct{ folder replay.Folder }

func (a folderArchive) String() string { return a.folder.Path }

func (a folderArchive) read(context.Context) (*replay.History, error) { return a.folder.Read() }

func (a folderArchive) write(_ context.Context, h *replay.History) error { return a.folder.Write(h) }

// configMapArchive is a ConfigMap of the hub cluster that somebody has made.
type configMapArchive struct {
	hub  client.Client
	name types.NamespacedName
	is   *corev1.ConfigMap // as it was read or written last
}

func (a *configMapArchive) String() string { return "ConfigMap " + a.name.String() }

func (a *configMapArchive) read(ctx context.Context) (*replay.History, error) {
	ctx, cancel := context.WithTimeout(ctx, hubWrite)
	defer cancel()
	is := &corev1.ConfigMap{}
	if err := a.hub.Get(ctx, a.name, is); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("create the ConfigMap first, because the hub may not: %w", err)
		}
		return nil, err
	}
	known, err := replay.ReadHistory(is.Data)
	if err != nil {
		return nil, err
	}
	a.is = is
	return known, nil
}

// write writes it if it is as it was read or written last.
func (a *configMapArchive) write(ctx context.Context, h *replay.History) error {
	ctx, cancel := context.WithTimeout(ctx, hubWrite)
	defer cancel()
	into := a.is.DeepCopy()
	into.Data = h.Files(replay.MaxHistory)
	if err := a.hub.Update(ctx, into); err != nil {
		return err
	}
	a.is = into
	return nil
}
