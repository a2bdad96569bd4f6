package guard

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProgramsOnRealOnes makes up programs of sed, awk and jq, and runs those that are accepted. GNU sed in its sandbox says whether a script
// runs a program or opens a file; awk must write no file, and jq must not show the environment.
func TestProgramsOnRealOnes(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		parts  string
		check  func(string, opens) error
		words  []string
		before string
		after  string
		shows  string
	}{
		"sed": {
			"s / / / [ ] [:alpha:] [^ ] \\ e w x y r { } \n ! # p , 1 ; ; s/a/b/ a \\n | I g s| $ : b 2",
			checkSED,
			[]string{"--sandbox", "-n", "--"},
			"", "", "sandbox mode",
		},
		"awk": {
			"print\t1 print\t(1 >\tf >\tf >\"f\" |\"f\" x=1/2 print / print / /a/ [ ] ( ) { } \n ; > >> \"f\" \"a\" \" f a 1 $1 , + if(1) length getline # \\\n \\/ [/] ? : || | ! ~ - \\",
			checkAWK,
			[]string{"--"},
			"BEGIN { f = \"g\"; ", "}", "sh: ",
		},
		"jq": {
			"env $ENV env $ ENV env . , | : { } [ ] ( ) \" \" \\( # \n \\ .a $x 1 .. path( keys \"a\" : ,",
			func(text string, _ opens) error { return checkJQ(text) },
			[]string{"-n", "--arg", "x", "1"},
			"", "", "LEAKED",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(name)
			if err != nil || name == "sed" && exec.CommandContext(t.Context(), program, "--sandbox", "p", "/dev/null").Run() != nil {
				require.Empty(t, os.Getenv("CI"), name)
				t.Skipf("the %s of this host does not serve", name)
			}
			parts := strings.Split(of.parts, " ")
			random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable on purpose
			accepted, dir := 0, t.TempDir()
			for range 3_000 {
				text := of.before
				for range 3 + random.IntN(9) {
					text += parts[random.IntN(len(parts))] + []string{"", " "}[random.IntN(2)]
				}
				text += of.after
				opened := false
				if of.check(text, func(string, bool) error { opened = true; return nil }) != nil || opened {
					continue
				}
				accepted++
				command := exec.CommandContext(t.Context(), program, append(of.words, text)...)
				command.Dir = dir
				command.Env = []string{"X=LEAKED", "PATH=/nowhere"}
				output, _ := command.CombinedOutput() // most are mistakes
				require.NotContains(t, string(output), of.shows, "%q", text)
				files, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, files, "%q", text)
			}
			require.Greater(t, accepted, 50)
			t.Logf("%d were accepted", accepted)
		})
	}
}
