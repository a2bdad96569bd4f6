package access_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/desk/web/access"
	"github.com/claudeops/claudeops/internal/escalation"
)

func TestConversationsOfPeople(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, name := range []string{"ada", "ada@example.org", "ada-example.org", "ada example.org", "", "-", "\x1b]0;x", "about-x", "ж", "chat-0123456789abcdef"} {
		person := access.Person{Name: name, Roles: []access.Role{access.Talk}}
		own := person.Conversation()
		require.NoError(t, escalation.CheckConversationName(own), "%q", name)
		require.False(t, names[own], "two people share %s", own)
		names[own] = true
		require.True(t, person.MayTalkIn(own))
		if own != name {
			require.Error(t, access.Person{Name: own, Roles: []access.Role{access.Talk}}.CheckTalk(own), "whoever takes the name %s", own)
		}
		require.NoError(t, person.CheckTalk(escalation.AboutChain("chain-1")), "those about chains are for all")
		require.Error(t, person.CheckTalk("grace"))
	}
	require.Equal(t, "ada", access.Person{Name: "ada"}.Conversation())
	require.NoError(t, access.Person{Name: "ada", Roles: []access.Role{access.Operate}}.CheckTalk("grace"))
	require.Error(t, access.Person{Name: "ada", Roles: []access.Role{access.View}}.CheckTalk("ada"))

	for own, reads := range map[access.Role]bool{
		access.View: true, access.Answer: true, access.Operate: true, access.Talk: false, access.Alert: false,
	} {
		person := access.Person{Name: "ada", Roles: []access.Role{own}}
		require.Equal(t, reads, person.CheckRead("grace") == nil, "%s reads what others have said", own)
		require.Equal(t, own != access.Alert, person.May(access.ReadTalk), own)
	}

	for kind, role := range map[escalation.ProposalKind]access.Role{
		escalation.ProposeAnswer: access.Answer, escalation.ProposeChain: access.Operate, escalation.ProposeEscalate: access.Operate,
		escalation.ProposeClose: access.Operate, "odd": access.Operate,
	} {
		for _, own := range []access.Role{access.View, access.Talk, access.Answer, access.Operate} {
			err := access.Person{Roles: []access.Role{access.Talk, own}}.CheckProposal(escalation.Proposal{Kind: kind})
			require.Equal(t, own.Includes(role), err == nil, "%s, %s", kind, own)
		}
	}
}
