package completions

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDefuse checks that images and tags of a reply load nothing, wherever they hide, and that code stays as it is.
func TestDefuse(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{
		"It is **well**: a < b, [logs](https://ops.example.org)": "It is **well**: a < b, [logs](https://ops.example.org)",
		"![x](https://evil.example/?k=1)":                        "!&#91;x](https://evil.example/?k=1)",
		`\<img src=x> \![x][y]`:                                  `\&lt;img src=x> \!&#91;x][y]`,
		"<!-- --> </p> <?x ?>":                                   "&lt;!-- --> &lt;/p> &lt;?x ?>",
		"\x1b[31mred\x1b[0m\u202e <b\r\n>":                       "[31mred[0m &lt;b\n>",
		"use `docker exec <name>` <b>":                           "use `docker exec <name>` &lt;b>",
		"```html\n<img>\n```\n<img>":                             "```\n<img>\n```\n&lt;img>",
		"| `a | ![x](https://evil.example) <img> ` |\n`<b>`":     "| `a | !&#91;x](https://evil.example) &lt;img> ` |\n`<b>`",
		"a `\n`<img>`":                                           "a `\n`&lt;img>`",
		"`` ` <img> ` ``\n`<img>`":                               "`` ` &lt;img> ` ``\n`&lt;img>`",
		"\\`<img>`":                                              "\\`&lt;img>`",
		"   ```\n```\n<img>":                                     "   ```\n```\n&lt;img>",
		"````\n```\n<img>\n```\n<img>":                           "````\n```\n&lt;img>\n```\n&lt;img>",
		"```\n<a>\n  ```\n<img>\n```\n<img>":                     "```\n<a>\n  ```\n&lt;img>\n```\n&lt;img>",
		"~~~html\n<b>\n~~~":                                      "~~~\n&lt;b>\n~~~",
		"````html\n```js\n<b>\n````":                             "````\n```\n&lt;b>\n````",
		"- ```mermaid\n  x\n  ```\n\n> ~~~svg\n> <b>":            "- ```\n  x\n  ```\n\n> ~~~\n> &lt;b>",
		"1. ```html\n   <b>":                                     "1. ```\n   &lt;b>",
		"<!--\n```html\n<img>\n-->":                              "&lt;!--\n```\n<img>\n-->",
		"~~~\n```\n~~~\n<img>\n```\n<img>":                       "~~~\n```\n~~~\n&lt;img>\n```\n&lt;img>",
	} {
		require.Equal(t, want, defuse(reply), reply)
	}
}
