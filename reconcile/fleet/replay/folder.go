package replay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
)

// shapeFolder are the names of folders with a history: one for each shape of pods. Others are somebody else's, and left alone.
var shapeFolder = regexp.MustCompile(`^[0-9a-f]{12}$`)

// unfinished ends the names of files that are being written.
const unfinished = ".new"

// A Folder keeps a history in files that [FindTraces] reads: in a folder for each shape of pods, a file for each member. Each file is
// written beside the one before it and then put in its place, so that whoever reads, or starts after a crash, finds one or the other.
type Folder struct {
	// Path is where it is. It must be there.
	Path string
}

// Read reads the history. A file in a folder of it that is none is an error, and so is more than twice as much as is ever written.
func (f Folder) Read() (*History, error) {
	root, err := os.OpenRoot(f.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	folders, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	files, size := map[string]string{}, 0
	for _, folder := range folders {
		if !folder.IsDir() || !shapeFolder.MatchString(folder.Name()) {
			continue
		}
		entries, err := fs.ReadDir(root.FS(), folder.Name())
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := path.Join(folder.Name(), entry.Name())
			if strings.HasSuffix(entry.Name(), unfinished) { // of a process that has ended
				if err := root.Remove(name); err != nil {
					return nil, err
				}
				continue
			}
			info, err := entry.Info()
			if err != nil {
				return nil, err
			}
			if size += int(info.Size()); size > 2*MaxHistoryFiles {
				return nil, fmt.Errorf("%s holds more than %d bytes, which is no history", f.Path, 2*MaxHistoryFiles)
			}
			text, err := root.ReadFile(name)
			if err != nil {
				return nil, err
			}
			files[strings.Replace(name, "/", historyBetween, 1)] = string(text)
		}
	}
	return ReadHistory(files)
}

// Write writes the files that have changed, in at most [MaxHistoryFiles] bytes of all. After an error the history is to be read again.
func (f Folder) Write(h *History) error {
	root, err := os.OpenRoot(f.Path)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	changed, gone := h.Changed(MaxHistoryFiles)
	for key, text := range changed {
		folder, name, _ := strings.Cut(key, historyBetween)
		if err := root.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := replace(root, folder, name, text); err != nil {
			return err
		}
	}
	for _, key := range gone {
		folder, name, _ := strings.Cut(key, historyBetween)
		if err := root.Remove(path.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = root.Remove(folder) // if nothing is left in it
	}
	return nil
}

// replace puts a file in place of another.
func replace(root *os.Root, folder, name string, text []byte) (err error) {
	beside := path.Join(folder, name+unfinished)
	file, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, root.Remove(beside))
	}
	return root.Rename(beside, path.Join(folder, name))
}
