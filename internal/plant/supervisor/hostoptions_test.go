package supervisor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/plant/config"
)

// TestLocalesOfAgents checks that agents have a locale in which each byte of ASCII is a character.
func TestLocalesOfAgents(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"": "", "C": "C", "POSIX": "POSIX", "de_DE.UTF-8": "de_DE.UTF-8", "sr_RS.utf8@latin": "sr_RS.utf8@latin",
		"zh_CN.GBK": "C.UTF-8", "zh_CN.gb18030": "C.UTF-8", "ja_JP.SJIS": "C.UTF-8", "zh_TW": "C.UTF-8", "zh_TW.Big5": "C.UTF-8", "x/../zh.UTF-8": "C.UTF-8",
	} {
		given := []string{"LANG=" + value, "LC_CTYPE=" + value, "LANGUAGE=zh_CN", "OTHER=" + value}
		require.Equal(t, []string{"LANG=" + want, "LC_CTYPE=" + want, "LANGUAGE=zh_CN", "OTHER=" + value},
			ClaudeOptions(config.Claude{}, given).Environ, value)
		require.Equal(t, "LANG="+value, given[0])
	}
}
