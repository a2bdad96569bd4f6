package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that pages refer to.
type asset struct {
	content   []byte
	mediaType string
	// hash identifies the content. It is a part of the URL, so that a browser can keep the file for ever.
	hash string
}

// assets are the embedded files, by name.
type assets map[string]asset

// scripts are joined into one file. If they were several, htmx could begin before its extension is there.
var scripts = []string{"htmx.min.js", "hx-sse.min.js", "live.js"} //nolint:gochecknoglobals // a constant list

// loadAssets reads the embedded files.
func loadAssets() (assets, error) {
	loaded := assets{}
	err := fs.WalkDir(assetFiles, "assets", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := assetFiles.ReadFile(file)
		loaded[path.Base(file)] = newAsset(file, content)
		return err
	})
	var joined []byte
	for _, name := range scripts {
		joined = append(append(joined, loaded[name].content...), '\n')
		delete(loaded, name)
	}
	loaded["scripts.js"] = newAsset("scripts.js", joined)
	return loaded, err
}

func newAsset(file string, content []byte) asset {
	sum := sha256.Sum256(content)
	return asset{content, mediaTypeOf(file), hex.EncodeToString(sum[:8])}
}

// mediaTypeOf returns the media type of a file. It does not depend on the types that the host knows.
func mediaTypeOf(file string) string {
	switch path.Ext(file) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	}
	if known := mime.TypeByExtension(path.Ext(file)); known != "" {
		return known
	}
	return "text/plain; charset=utf-8"
}

// url returns the path of an asset.
func (a assets) url(name string) string { return "/assets/" + a[name].hash + "/" + name }

// serveIcon serves the picture that browsers ask for where a page names none, such as the login.
func (a assets) serveIcon(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", a["icon.png"].mediaType)
	w.Header().Set("Cache-Control", "public, max-age=86400")
	_, _ = w.Write(a["icon.png"].content) // an error means that the browser has gone
}

// ServeHTTP serves an asset under its current hash, which browsers keep for a year.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, ok := a[r.PathValue("name")]
	if !ok || r.PathValue("hash") != found.hash {
		http.Error(w, "There is no such file. Reload the page.", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", found.mediaType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(found.content) // an error means that the browser has gone
}
