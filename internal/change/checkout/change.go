package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Change describes what a worktree has committed since it left the shared directory.
type Change struct {
	// Commit has the files of the worktree's HEAD. If the question asks for a pack, it is a commit of ours on Base with
	// the author line of the supervisor, and nothing else of what the agent has committed leaves the host. Base is the
	// commit from which the change is shown, and Fork the one from which the work in the worktree began.
	Base, Commit, Fork string
	// Tree is the hash of the files of Commit, and Message the message of Commit: those of the agent's commits since
	// Base, in order.
	Tree, Message string
	// List is the output of git diff with the options --raw --numstat --no-renames -z.
	List string
	// Patch is the change in git's format. PatchCut reports whether it was longer than permitted.
	Patch    string
	PatchCut bool
	// Since is the change since an earlier commit, in git's format without context; empty if there is no earlier
	// commit.
	Since string
	// Unpushed counts the commits up to Fork that the remote origin does not have, and that leave with the first change
	// of a branch.
	Unpushed int
	// Below is the shared directory's path in its repository.
	Below string
	// Log is what all commits since Fork have changed, with their messages. Pack contains these commits for Checkpoint.
	// Both are empty if nobody asked for them, or if they are too large.
	Log  string
	Pack []byte
}

// Question says what a Change contains.
type Question struct {
	// Base is an earlier commit of the worktree from which the change is shown; empty for Change.Fork.
	Base string
	// Fork is the commit from which the work began, possibly on another host; empty for the one with which the worktree
	// began.
	Fork string
	// Since is the commit that was reviewed before; empty if there is none.
	Since string
	// Whole is the path of a file in the repository that the patch shows as a whole, and nothing else; empty for all
	// changes.
	Whole string
	// Pack asks for a commit that can leave the host: one of ours, with Change.Log and Change.Pack.
	Pack bool
}

const (
	// maxPatch limits a patch, in bytes. The patch becomes a part of a workflow's history.
	maxPatch = 200 << 10
	// maxList limits the list of changed files, in bytes.
	maxList = 256 << 10
)

// errListCut says that a change has too many files.
var errListCut = errors.New("the change has too many files to list")

// Change returns what the worktree has committed. If it has committed nothing, and the question names neither a base
// nor a reviewed commit, Change returns nil. If the change cannot be shown, Change returns its commit with the error.
// Change stops after the time limit, and not when ctx ends.
func (p *Place) Change(ctx context.Context, question Question, limit time.Duration) (*Change, error) {
	if p.Worktree == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := p.git.recheck(p.Worktree); err != nil {
		return nil, err
	}
	change := &Change{Below: filepath.ToSlash(p.Worktree.repository.below)}
	head, err := p.git.at(ctx, p.Worktree, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return nil, err
	}
	switch change.Fork = cmp.Or(question.Fork, p.Worktree.fork); {
	case change.Fork == head && question.Base == "":
		return nil, nil
	case change.Fork == "":
		return nil, fmt.Errorf("nobody knows from which commit of %s the work began, or there is none",
			p.Worktree.Origin)
	}
	change.Base = cmp.Or(question.Base, change.Fork)
	if err := p.git.summarize(ctx, p.Worktree, head, change); err != nil {
		return nil, err
	}
	if question.Pack && change.Commit != change.Base {
		if err := p.git.propose(ctx, p.Worktree, head, change); err != nil {
			return nil, err
		}
	}
	if change.Commit == change.Base && question.Base == "" && question.Since == "" {
		return nil, nil
	}
	if question.Since != "" && !p.git.has(ctx, inTree(p.Worktree), question.Since) {
		question.Since = "" // another host has made it, and it is no ancestor of the change
	}
	if err := p.git.verify(ctx, inTree(p.Worktree), head, change.Fork, change.Base, change.Commit,
		question.Since); err != nil {
		return change, err
	}
	if err := p.git.describe(ctx, p.Worktree, change, question); err != nil || !question.Pack {
		return change, err
	}
	if change.Base == change.Fork {
		if change.Unpushed, err = p.git.unpushed(ctx, p.Worktree, change.Fork); err != nil {
			return change, err
		}
	}
	return change, p.git.pack(ctx, p.Worktree, change)
}

// unpushed counts the commits up to fork that the remote origin does not have, as far as the repository knows. They
// would leave with a change that is based on it, and are not part of it. Without a remote, nothing leaves.
func (g git) unpushed(ctx context.Context, tree *Worktree, fork string) (commits int, err error) {
	remote, err := g.pushAddress(ctx, tree.repository)
	if err != nil || remote == "" {
		return 0, err
	}
	count, err := g.at(ctx, tree, "rev-list", "--count", fork, "--not", "--remotes=origin", "--")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(count)
}

const (
	// maxCommitMessage limits the message of a commit of ours, in bytes.
	maxCommitMessage = 8 << 10
	// messageEnd ends each message in the output of git log.
	messageEnd = "\x00"
)

// summarize fills in the commit, its files and its message. If the worktree has changed nothing since the base, the
// commit is the base.
func (g git) summarize(ctx context.Context, tree *Worktree, head string, change *Change) error {
	files, err := g.at(ctx, tree, "rev-parse", "--verify", head+"^{tree}")
	if err != nil {
		return err
	}
	change.Tree = files
	before, err := g.at(ctx, tree, "rev-parse", "--verify", change.Base+"^{tree}")
	if err != nil {
		return fmt.Errorf("the worktree no longer has the commit %s, on which its work was based: %w", change.Base, err)
	}
	if change.Commit = head; files == before {
		change.Commit = change.Base
		return nil
	}
	log, _, err := g.atMost(ctx, tree, maxCommitMessage, "log", "--reverse", "--first-parent", "--no-merges",
		"--no-show-signature",
		"--encoding=UTF-8", "--format=%B%x00", change.Base+".."+head)
	if err != nil {
		return err
	}
	change.Message = messageOf(log)
	return nil
}

// propose makes the commit of ours that has the files and the message of a change. Of the agent's commits it takes
// nothing else: their parents, authors and what they had in between stay here. The commit becomes the HEAD, so that
// later work is based on it. The same HEAD on the same base gives the same commit.
func (g git) propose(ctx context.Context, tree *Worktree, head string, change *Change) error {
	date, err := g.at(ctx, tree, "show", "--no-patch", "--no-show-signature", "--format=%ct", head)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s <%s> %s +0000", AuthorName, AuthorAddress, date)
	at, made := inTree(tree), limited{most: maxOutput}
	at.writable = []string{filepath.Join(at.repository.dir, "objects")}
	err = g.write(ctx, at, []string{"hash-object", "-t", "commit", "-w", "--stdin"}, strings.NewReader(fmt.Sprintf(
		"tree %s\nparent %s\nauthor %s\ncommitter %s\n\n%s\n", change.Tree, change.Base, line, line,
		change.Message)), &made)
	change.Commit = strings.TrimSpace(string(made.kept))
	if err != nil || change.Commit == head {
		return err
	}
	if err := g.unlock(tree); err != nil {
		return err
	}
	at.writable = tree.Writable()
	_, err = g.run(ctx, at, []string{
		"update-ref", "-m", "claudeops: one commit for " + head, "HEAD", change.Commit,
		head,
	})
	return err
}

// messageOf joins the messages of commits, oldest first. A message that repeats the one before it counts once.
func messageOf(log string) string {
	var messages []string
	for message := range strings.SplitSeq(log, messageEnd) {
		message = strings.ToValidUTF8(strings.TrimSpace(strings.ReplaceAll(message, "\r", "")), "\uFFFD")
		if message != "" && !slices.Contains(messages, message) {
			messages = append(messages, message)
		}
	}
	if len(messages) == 0 {
		return "change by " + AuthorName
	}
	return strings.Join(messages, "\n\n")
}

// committed describes a second worktree, for the time in which a commit is checked.
func (w *Worktree) committed() *Worktree {
	return &Worktree{
		repository: w.repository, Guarded: Paths{Top: w.Guarded.Top + ".committed", Common: w.Guarded.Common},
	}
}

// Committed returns a worktree with the files of a commit and no others: it lacks what was not committed, and nothing
// in it is hidden by an index that the agent wrote. Tidy removes it.
func (p *Place) Committed(ctx context.Context, commit string) (*Worktree, error) {
	tree := p.Worktree.committed()
	if err := p.git.clear(ctx, tree); err != nil {
		return nil, err
	}
	args := []string{"worktree", "add", "--quiet", "--detach", tree.Guarded.Top, commit}
	if err := p.git.alone(ctx, tree.administered(), args); err != nil {
		return nil, err
	}
	return tree, p.git.check(tree)
}

// Restore gives files of a worktree that Committed has made the content that they have in another commit. A file that
// the commit does not have is removed.
func (p *Place) Restore(ctx context.Context, tree *Worktree, commit string, names []string) error {
	at := inTree(tree)
	at.writable = []string{tree.Guarded.Top, tree.Guarded.GitDir}
	for _, name := range names {
		literal := ":(top,literal)" + name
		args := []string{"rm", "--quiet", "--force", "--", literal}
		if listed, err := p.git.run(ctx, at, []string{"ls-tree", "--full-tree", commit, "--", name}); err != nil {
			return err
		} else if listed != "" {
			args = []string{"checkout", "--quiet", commit, "--", literal}
		}
		if _, err := p.git.run(ctx, at, args); err != nil {
			return err
		}
	}
	return nil
}

// plainDiff returns the arguments of a git command that compares, so that neither the repository nor its configuration
// changes what it shows.
func plainDiff(command string) []string {
	return []string{command, "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none"}
}

// describe fills in the files and the patches of a change.
func (g git) describe(ctx context.Context, tree *Worktree, change *Change, question Question) error {
	read := func(most int, from string, options ...string) (string, bool, error) {
		args := append(plainDiff("diff"), options...)
		args = append(args, from, change.Commit, "--")
		if question.Whole != "" && slices.Contains(options, "--patch") {
			args = append(args, ":(top,literal)"+question.Whole)
		}
		return g.atMost(ctx, tree, most, args...)
	}
	list, cut, err := read(maxList, change.Base, "--raw", "--numstat", "-z")
	if err == nil && cut {
		err = errListCut
	}
	if err != nil {
		return err
	}
	change.List = list
	from := change.Base
	if question.Whole != "" {
		if from, err = g.at(ctx, tree, "hash-object", "-t", "tree", "--stdin"); err != nil { // the empty tree
			return err
		}
	}
	if change.Patch, change.PatchCut, err = read(maxPatch, from, "--patch"); err != nil || question.Since == "" {
		return err
	}
	change.Since, cut, err = read(maxPatch, question.Since, "--unified=0")
	change.PatchCut = change.PatchCut || cut
	return err
}

// File returns a file of a commit, with a limit in bytes. If the commit has no such file, File returns "".
func (p *Place) File(ctx context.Context, commit, name string, most int) (string, error) {
	return p.git.file(ctx, inTree(p.Worktree), commit, name, most)
}

// file returns a file of a commit, with a limit in bytes. If the commit has no such file, file returns "".
func (g git) file(ctx context.Context, at where, commit, name string, most int) (string, error) {
	entry, err := g.run(ctx, at, []string{"ls-tree", "--full-tree", commit, "--", name})
	if err != nil || entry == "" {
		return "", err
	}
	if !strings.HasPrefix(entry, "100644 blob ") && !strings.HasPrefix(entry, "100755 blob ") {
		return "", fmt.Errorf("%s is no ordinary file in %s", name, commit)
	}
	content := limited{most: most + 1}
	err = g.write(ctx, at, []string{"cat-file", "blob", commit + ":" + name}, nil, &content)
	if err == nil && len(content.kept) > most {
		err = fmt.Errorf("%s has more than %d bytes in %s", name, most, commit)
	}
	return string(content.kept[:min(len(content.kept), most)]), err
}

// Remote describes the remote origin of a repository.
type Remote struct {
	// Push and Fetch are its addresses; empty if there is no remote.
	Push, Fetch string
	// Branch is the branch of the shared directory, if the remote has a branch with this name; empty otherwise.
	Branch string
}

// Remote returns the remote origin.
func (p *Place) Remote(ctx context.Context) (Remote, error) {
	in := p.Worktree.repository
	push, err := p.git.pushAddress(ctx, in)
	if err != nil || push == "" {
		return Remote{}, err
	}
	read := func(args ...string) (string, error) {
		text, err := p.git.in(ctx, in, args...)
		if _, none := errors.AsType[*failedError](err); none {
			return "", nil
		}
		return text, err
	}
	fetch, fetchErr := p.git.in(ctx, in, "remote", "get-url", "origin")
	branch, branchErr := read("symbolic-ref", "--quiet", "--short", "HEAD")
	known, knownErr := read("rev-parse", "--verify", "--quiet", "refs/remotes/origin/"+branch)
	if known == "" {
		branch = ""
	}
	return Remote{Push: push, Fetch: fetch, Branch: branch}, errors.Join(fetchErr, branchErr, knownErr)
}

// Origin is the repository from which a commit can be pushed.
type Origin struct {
	// Top is the top of the working directory, and Common the repository's directory.
	Top, Common string
	// Remote is the address of the remote origin; empty if there is none.
	Remote string
}

// Origin returns the repository of a directory, with the commits of a checkpoint. If the repository cannot have them,
// or git could run programs that its configuration names, Origin returns an error.
func (k *Keeper) Origin(ctx context.Context, directory string, from Checkpoint) (Origin, error) {
	in, err := k.holding(ctx, directory, from)
	if err != nil {
		return Origin{}, err
	}
	remote, err := k.git.pushAddress(ctx, in)
	return Origin{Top: in.top, Common: in.dir, Remote: remote}, err
}

// holding returns the repository of a directory, with the commits of a checkpoint.
func (k *Keeper) holding(ctx context.Context, directory string, from Checkpoint) (repository, error) {
	_, found := findRepository(directory)
	in := found.repository
	switch {
	case found.problem != nil:
		return in, found.problem
	case k.git.path == "":
		return in, errors.New("there is no git on the PATH")
	}
	if err := in.check(k.options.User); err != nil {
		return in, err
	}
	return in, k.git.obtain(ctx, where{repository: in}, from)
}

// pushAddress returns the address of the remote origin for pushes; empty if there is none.
func (g git) pushAddress(ctx context.Context, in repository) (string, error) {
	if there, err := g.hasOrigin(ctx, in); err != nil || !there {
		return "", err
	}
	return g.in(ctx, in, "remote", "get-url", "--push", "origin")
}

// hasOrigin reports whether a repository has the remote origin. A remote whose address cannot be read is one.
func (g git) hasOrigin(ctx context.Context, in repository) (bool, error) {
	remotes, err := g.in(ctx, in, "remote")
	return slices.Contains(strings.Fields(remotes), "origin"), err
}
