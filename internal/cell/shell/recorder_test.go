//go:build linux

package shell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/cell/door"
)

// recorderRole is the first argument of the test binary when it interprets scripts for the differential test, bashRole
// when it becomes the real bash.
const (
	recorderRole = "claudeops-recorder"
	bashRole     = "claudeops-bash"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == recorderRole {
		if err := record(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == bashRole {
		fmt.Fprintln(os.Stderr, becomeBash(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// becomeBash replaces this process by bash, as the user nobody and in the directory root as its root. bash opens
// <(COMMAND) below /proc.
func becomeBash(root string) error {
	return errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), syscall.Mount("proc", root+"/proc", "proc", 0, ""),
		syscall.Chroot(root), os.Chdir("/"), syscall.Setgid(nobody), syscall.Setuid(nobody),
		syscall.Exec("/program/bash", []string{"/program/bash", "--noprofile", "--norc", "/driver"}, os.Environ()),
	)
}

// record interprets the scripts from an index on, as the user nobody and in the directory root as its root. It prints
// the index and the exit code of each.
func record(root, input, from string) error {
	var scripts []string
	content, err := os.ReadFile(input)
	if err == nil {
		err = json.Unmarshal(content, &scripts)
	}
	start := 0
	if err == nil {
		_, err = fmt.Sscan(from, &start)
	}
	null, openErr := os.Open(os.DevNull)
	if err := errors.Join(err, openErr, syscall.Chroot(root), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
		return err
	}
	for i, script := range scripts[start:] {
		syscall.Umask(0o022)
		code, err := recordOne(script, start+i, null)
		if err != nil {
			return err
		}
		fmt.Println(start+i, code)
	}
	return nil
}

// recordOne interprets one script.
func recordOne(script string, index int, null *os.File) (code int, err error) {
	dir := fmt.Sprintf("/w/%d", index)
	if err := os.Chdir(dir); err != nil {
		return 0, err
	}
	out, outErr := os.Create(fmt.Sprintf("/out/%d", index))
	diagnostics, errErr := os.Create(fmt.Sprintf("/err/%d", index))
	log, logErr := os.Create(fmt.Sprintf("/log/%d", index))
	if err := errors.Join(outErr, errErr, logErr); err != nil {
		return 0, err
	}
	r := &recorder{log: log}
	environ := []string{"PATH=/none", "HOME=/home", "TMPDIR=" + dir + "/t", "LC_ALL=C.UTF-8"}
	s := &session{door: r, environ: environ, execute: r.execute}
	code, _ = s.interpret(door.Script{Text: script}, given{environ: environ, dir: dir, in: null, out: out, err: diagnostics})
	s.end()
	return code, errors.Join(out.Close(), diagnostics.Close(), log.Close())
}

// recorder allows everything, and records programs in place of starting them.
type recorder struct {
	mutex sync.Mutex
	log   io.Writer
}

// Ask implements door.
func (*recorder) Ask(question door.Question) (door.Answer, error) {
	if question.Open != nil {
		return door.Answer{Allowed: true, Path: question.Open.Path}, nil
	}
	name := question.Start.Words[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = question.Start.Dir + "/" + name
		}
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
			return door.Answer{Allowed: true}, nil
		}
	}
	return door.Answer{Allowed: true, Path: "/program", Words: question.Start.Words}, nil
}

// substituted matches the named pipe of <(COMMAND).
var substituted = regexp.MustCompile(`^/.*/sh-interp-[0-9a-f]+$`)

// execute is the stand-in of every program. It does the same as the function handler of bash.
func (r *recorder) execute(answer door.Answer, p given, _ string) int {
	if strings.Contains(answer.Words[0], "/") {
		return exitDenied
	}
	var input []byte
	if p.in != nil {
		input, _ = io.ReadAll(p.in)
	}
	fields := []string{"CALL", p.dir, string(input), fmt.Sprint(len(answer.Words))}
	for _, word := range answer.Words {
		if substituted.MatchString(word) {
			content, _ := os.ReadFile(word)
			word = "<(" + string(content) + ")"
		}
		fields = append(fields, word)
	}
	r.mutex.Lock()
	_, _ = io.WriteString(r.log, strings.Join(fields, "\x00")+"\x00")
	r.mutex.Unlock()
	if _, err := io.WriteString(p.out, printed(answer.Words, string(input))); errors.Is(err, syscall.EPIPE) {
		return 128 + int(syscall.SIGPIPE)
	}
	if len(answer.Words)%5 == 4 {
		return 3
	}
	return 0
}

// printed returns what a stand-in prints.
func printed(words []string, input string) string {
	switch words[0] {
	case "cat", "tee", "sort", "head", "tail", "grep":
		return input
	case "docker", "podman", "kubectl":
		return "web-1\ndb\n"
	case "nproc", "date", "wc", "uptime":
		return "4\n"
	}
	switch len(words) % 4 {
	case 0:
		return "-v\n"
	case 1:
		return "a[$(id)]\n"
	case 2:
		return ". -delete\n"
	}
	return "-rf\n*\na b\n$(id)\n{a,b}\n~root\n1\n"
}

// handler defines the function that bash calls if it finds no program. The function stands in for every program.
//
//nolint:dupword // a script
const handler = `command_not_found_handle() {
builtin set +euxf
builtin local IFS=' ' __w __d __in
__a=()
builtin cd -P .
builtin mapfile __d 2>/dev/null
builtin printf -v __in %s "${__d[@]}"
for __w; do
  case $__w in /dev/fd/[0-9]*)
    builtin mapfile __d <&"${__w#/dev/fd/}" 2>/dev/null
    builtin printf -v __w %s "${__d[@]}"
    __w="<($__w)"
  esac
  __a+=("$__w")
done
__a=("${__a[@]//$'\n'/$'\2'}") # bash writes line by line, and calls can be concurrent
builtin printf '%s\0' CALL "$PWD" "${__in//$'\n'/$'\2'}" "$#" "${__a[@]}" >> /log/$__n
case $1 in
cat|tee|sort|head|tail|grep) builtin printf %s "$__in";;
docker|podman|kubectl) builtin printf '%s\n' web-1 db;;
nproc|date|wc|uptime) builtin printf '%s\n' 4;;
*)
  case $(($# % 4)) in
  0) builtin printf '%s\n' -v;;
  1) builtin printf '%s\n' 'a[$(id)]';;
  2) builtin printf '%s\n' '. -delete';;
  *) builtin printf '%s\n' -rf '*' 'a b' '$(id)' '{a,b}' '~root' 1;;
  esac
esac
builtin exit $(($# % 5 == 4 ? 3 : 0))
}
readonly -f command_not_found_handle
enable -n kill which 2>/dev/null
FUNCNEST=20
ulimit -u 60 -t 60 -v 2000000 -f 20480
`

// driver returns the script with which bash runs scripts from an index on.
func driver(scripts []string, from int) []byte {
	var all bytes.Buffer
	all.WriteString(handler)
	for i, script := range scripts[from:] {
		i += from
		body := "builtin eval -- " + quote([]string{script})
		if startsOther.MatchString(script) { // a program that replaces the shell
			body = "exec() { command_not_found_handle \"$@\"; }; " + body
		}
		one := fmt.Sprintf("(builtin cd /w/%d; unset OLDPWD; TMPDIR=/w/%d/t; readonly __n=%d; %s\n) </dev/null >/out/%d 2>/err/%d", i, i, i, body, i, i)
		if hasJobs(script) { // wait for every process that holds descriptor 8
			one = ": $(exec 8>&1\n" + one + "; printf %s $? >/code/" + fmt.Sprint(i) + "); printf '%s %s\\n' " + fmt.Sprint(i) + " $(</code/" + fmt.Sprint(i) + ")\n"
		} else {
			one += "; printf '%s %s\\n' " + fmt.Sprint(i) + " $?\n"
		}
		all.WriteString(one)
	}
	return all.Bytes()
}

// startsOther matches exec with a program.
var startsOther = regexp.MustCompile(`\bexec\s+[^\s\d<>&;|]`)

// nobody is the id of the user that runs the scripts. No other process has it, so the limit of processes is theirs.
const nobody = 61234

// stuck is the time without progress after which a script is given up for the first time. It is then run again, with
// more patience.
const stuck = 5 * time.Second
