package store_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/claudeops/claudeops/internal/escalation"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/systemtest/postgrestest"
)

// backend creates an empty database and returns a function that opens a Store on it. Each call opens another Store,
// which is closed when the test ends.
type backend func(t testing.TB) (open func() *store.Store)

func TestSQLite(t *testing.T) {
	t.Parallel()
	testBackend(t, sqliteBackend)
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	testBackend(t, postgresBackend)
}

// testBackend checks the package's promises on a kind of database.
func testBackend(t *testing.T, database backend) {
	for name, test := range map[string]func(*testing.T, backend){
		"a record keeps every field":                testEveryField,
		"a conversation that cannot be resumed":     testUnusableConversation,
		"a close keeps every field of the report":   testEveryReportField,
		"text that is not UTF-8":                    testInvalidText,
		"sequence counts within a chain":            testSequence,
		"opening is idempotent":                     testOpenIdempotent,
		"opening refuses what contradicts":          testOpenRefuses,
		"closing is idempotent":                     testCloseIdempotent,
		"closing again keeps the replaced report":   testCloseReplaces,
		"closing refuses what says nothing":         testCloseRefuses,
		"reading what is not there":                 testNotFound,
		"a chain by sequence":                       testChain,
		"forward and backward as a plain walk does": testLines,
		"the sessions that are not closed":          testRunning,
		"the window reported last":                  testContextWindow,
		"healthy looks":                             testHealthyLooks,
		"events keep their order and come once":     testEvents,
		"events are all recorded or none":           testEventsAtomic,
		"what was delivered":                        testDeliveries,
		"alerts to their chains":                    testAlerts,
		"alerts that have resolved":                 testResolvedAlerts,
		"a storm of alerts on two hosts":            testAlertStorm,
		"what is admitted is recorded":              testAdmitted,
		"what is refused leaves nothing":            testRefused,
		"a request that cannot be judged":           testOpenRefusesRequests,
		"what a day has cost":                       testDaySpent,
		"chains that repair within a window":        testEscalationsPerWindow,
		"force passes a cooldown":                   testForced,
		"presumed actions":                          testPresumedActions,
		"the limit of the account":                  testAccountLimit,
		"spending of a reset chain":                 testSpendingOfAResetChain,
		"a review decides as an opening":            testReview,
		"many chains, one budget":                   testConcurrentAdmission,
		"what is new":                               testNews,
		"news of concurrent writers":                testNewsOfWriters,
		"the ledger by time":                        testLedger,
		"the ledger of a session reported twice":    testLedgerOfReports,
		"a call is charged or refused":              testCharge,
		"a call does all of its actions or none":    testChargeWhole,
		"a call is charged once":                    testChargeOnce,
		"what never ran is given back":              testReturnCharge,
		"what reached nothing is taken back":        testTakeBack,
		"services with limits of their own":         testChargeLimits,
		"a session that a person let pass":          testChargeForced,
		"what cannot be charged":                    testChargeRefuses,
		"charges count for an admission":            testChargeAndAdmission,
		"a verdict adds to charges":                 testChargeAndVerdict,
		"many calls, one limit":                     testConcurrentCharges,
		"decisions on calls":                        testDecisions,
		"decisions are all recorded or none":        testDecisionsAtomic,
		"denied calls are found":                    testDenied,
		"what is kept of a call is bounded":         testDecisionsBounded,
		"services are locked and released":          testServiceLocks,
		"a lock on all services":                    testRepairOfAllServices,
		"locks and limits compare names":            testServiceNames,
		"a lock that was claimed again stays":       testReleaseLock,
		"a repeated opening claims again":           testRepetitionClaims,
		"settling comes too late or not":            testSettle,
		"an incident to its end":                    testIncident,
		"verdicts and their incidents":              testIncidentsOfVerdicts,
		"an incident of no service":                 testIncidentOfNoService,
		"an incident of many chains":                testIncidentOfManyChains,
		"a healed incident of many chains":          testHealedIncidentOfManyChains,
		"dry runs after a gate":                     testDryRunsAfterAGate,
		"repairs among many of other services":      testRepairsAmongMany,
		"a worse incident beside an issue":          testWorseBesideIssue,
		"incidents that come back":                  testIncidentReturns,
		"incidents of a repeated close":             testIncidentsTwice,
		"incidents of a look with a request":        testHealthyRequest,
		"incidents during a handoff":                testHandoffClaims,
		"incidents that become worse again":         testWorseAgain,
		"incidents that people have acknowledged":   testAcknowledgedIncidents,
		"incidents of overlapping looks":            testOverlappingLooks,
		"a person closes an incident":               testCloseIncident,
		"incidents of a chain that has gone":        testAbandonedIncidents,
		"what an opening tells of incidents":        testIncidentBrief,
		"one of two incidents of a split chain":     testIncidentsOfIssues,
		"incidents of a workflow ID used again":     testIncidentsOfAnID,
		"an incident of a chain without a session":  testIncidentBeforeSession,
		"an incident of looks that fail":            testFailedLooks,
		"looks that fail without an incident":       testNoFailedLook,
		"a chain that could look after its failure": testLookedSince,
		"resolved while a look ran":                 testResolvedDuringALook,
		"found by a host with a slow clock":         testSlowHost,
		"a chain that has moved on":                 testMovedOn,
		"a look that failed, and has moved on":      testFailedLookMovedOn,
		"a repair that names no service":            testRepairNamesNoService,
		"one incident as two issues":                testSplitIncident,
		"an incident of a dry run":                  testDryRunIncident,
		"agents are not told of looks that fail":    testBriefWithoutFailedLooks,
		"two stores, many goroutines":               testConcurrentSessions,
		"one session opened by everyone":            testConcurrentSameSession,
		"an ended context":                          testEndedContext,
		"the records of one namespace":              testClaim,
		"two namespaces that begin at once":         testClaimAtOnce,
		"chains whose records are old":              testOldChains,
		"a page of incidents":                       testPageOfIncidents,
		"an incident closed by a wrong clock":       testClosedByAWrongClock,
		"an incident of unknown cost":               testIncidentOfUnknownCost,
		"old chains with one ID":                    testOldRuns,
		"costs of removed sessions":                 testRemovedCosts,
		"clocks that jump ahead":                    testTrustClock,
		"incidents that are old":                    testOldIncidents,
		"one holder of a duty":                      testDuties,
		"a chain that restored records lack":        testRecover,
		"a session that a sweep closed too early":   testRecoverSettled,
		"the progress of a recovered chain":         testRecoverProgress,
		"a renamed service":                         testRename,
		"the end of a recovered chain":              testRecoverCooldown,
		"a recovered look, and a newer incident":    testRecoverHealed,
		"what sessions of a time have cost":         testCosts,
		"services of a long list":                   testManyServices,
		"what was done to services":                 testServiceActions,
		"all that is recorded of a session":         testSessionDetail,
		"the calls of a session":                    testSessionCalls,
		"the incidents resolved last":               testLatestResolved,
		"the numbers of lost records":               testSkipNumbers,
		"a turn of a conversation":                  testTalkTurn,
		"a turn without an answer":                  testTalkUnanswered,
		"messages that follow earlier answers":      testTalkBranches,
		"messages with the ID of another one":       testOtherMessages,
		"the list of conversations":                 testTalkList,
		"conversations of one person":               testTalksOfPerson,
		"a conversation that begins again":          testOpenTalk,
		"what a conversation learns":                testTalkFacts,
		"proposals are confirmed once":              testConfirmations,
		"turns that are old":                        testTalkRetention,
		"conversations beside chains":               testTalkBesideChains,
		"many senders of messages":                  testConcurrentMessages,
		"a candidate and who confirms it":           testMemoryOfPeople,
		"a memory that two incidents show":          testMemoryOfIncidents,
		"what poisoned logs propose":                testPoisonedMemory,
		"a memory that is proposed twice":           testMemoryProposedTwice,
		"memories for a prompt":                     testRecall,
		"memories that a conversation has read":     testRecallResumed,
		"a memory as a person has read it":          testMemoryAsRead,
		"a memory that is proposed by each look":    testManyProposals,
		"memories are found by their words":         testMemorySearch,
		"memories of a renamed service":             testMemoriesRenamed,
		"candidates that nobody confirms":           testOldMemories,
		"candidates are limited":                    testMaxCandidates,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, database)
		})
	}
}

func sqliteBackend(t testing.TB) func() *store.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ops.db")
	return func() *store.Store { return openFile(t, path) }
}

func postgresBackend(t testing.TB) func() *store.Store {
	t.Helper()
	database := postgrestest.Database(t)
	return func() *store.Store { return openURL(t, database) }
}

func openURL(t testing.TB, database string) *store.Store {
	t.Helper()
	s, err := store.OpenPostgres(bounded(t), database, 4)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openFile(t testing.TB, path string) *store.Store {
	t.Helper()
	s, err := store.Open(bounded(t), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// bounded returns a context that ends with the test, or after five minutes.
func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// opening returns a session with the fields that a chain sets to open it.
func opening(chainID, sessionID string, parent int64) escalation.Session {
	return escalation.Session{
		ParentID:         parent,
		ChainID:          chainID,
		SessionID:        sessionID,
		Tier:             escalation.TierObserve,
		Model:            "haiku",
		Trigger:          escalation.TriggerScheduled,
		Continuity:       escalation.ContinuityFresh,
		ContinuityReason: escalation.ReasonFirstTier,
		StartedAt:        noon,
	}
}

// lenient returns a policy without limits.
func lenient() escalation.Policy { return escalation.Policy{Tiers: make([]escalation.TierPolicy, 3)} }

// openSession opens a session under a policy without limits.
func openSession(ctx context.Context, s *store.Store, session escalation.Session) (escalation.Session, error) {
	opened, err := s.OpenSession(ctx, session, escalation.AdmissionRequest{}, lenient())
	return opened.Session, err
}

func mustOpen(t testing.TB, s *store.Store, session escalation.Session) escalation.Session {
	t.Helper()
	recorded, err := openSession(bounded(t), s, session)
	require.NoError(t, err)
	return recorded
}

func completed(costUSD float64) escalation.Report {
	return escalation.Report{
		Status:  escalation.SessionCompleted,
		Cost:    escalation.Cost{CostUSD: costUSD},
		Verdict: &escalation.Verdict{Status: escalation.VerdictHealthy, Services: []string{"jellyfin"}},
	}
}
