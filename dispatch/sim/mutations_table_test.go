package sim

// mutations are the deliberate defects: first those in the program, then those in the
// simulated hosts.
var mutations = []mutation{
	// dispatch/commit: which commands may leave, and when.
	{name: "commands leave while their records are on the way", file: "dispatch/commit/loop.go", edits: []edit{
		{"\tr.waitingCommands = append(r.waitingCommands, r.heldCommands...)\n\tclear(r.heldCommands)\n" +
			"\tr.heldCommands, r.isUrgent = r.heldCommands[:0], false\n\treturn r.batch, true",
			"\tr.isUrgent = false\n\treturn r.batch, true"},
		{"\tcase r.isWriting || len(r.pending) > 0:\n\t\treturn Out{}\n", ""}}},
	{name: "a journal that cannot be written stops nothing", file: "dispatch/commit/loop.go", edits: []edit{
		{"\tif err != nil {\n\t\treturn r.releaseHarmless()\n\t}\n\tr.numDurable", "\tr.numDurable"}}},
	{name: "results are called durable when they are not", file: "dispatch/commit/block.go", edits: []edit{
		{"\treturn Out{Commands: r.released}\n}", "\treturn Out{Commands: r.released, Durable: true}\n}"}}},
	{name: "a pause ends when the journal works again", file: "dispatch/commit/block.go", edits: []edit{
		{"		r.step(now, sched.Hold{By: sched.HoldJournal})",
			"		r.step(now, sched.Hold{By: sched.HoldJournal})\n		r.step(now, sched.Pause{})"}}},
	{name: "a launch leaves while its record waits", file: "dispatch/commit/loop.go", edits: []edit{
		{"\tcase r.isWriting || len(r.pending) > 0:\n\t\treturn Out{}\n",
			"\tcase r.isWriting || len(r.pending) > 0:\n" +
				"\t\tr.released, r.heldCommands = r.heldCommands, nil\n\t\treturn Out{Commands: r.released}\n"}}},
	{name: "a hung journal is due all the time", file: "dispatch/commit/loop.go", edits: []edit{
		{"	case r.isWriting && !r.isHung:\n", "	case r.isWriting:\n"}}},
	{name: "the end of the run is not recorded", file: "dispatch/commit/loop.go", edits: []edit{
		{"	if r.Ended() && clean {\n", "	if r.Ended() && !clean {\n"}}},

	// jobs/journal and jobs/rundir: what is durable, and which dispatcher owns it.
	{name: "no fsync", file: "jobs/journal/journal.go", edits: []edit{
		{"	if err := j.f.Sync(); err != nil {\n		return j.closeAfterFailure(err)\n	}\n", ""}}},
	{name: "a dispatcher that was taken over may act upon its records", file: "jobs/journal/journal.go", edits: []edit{
		{"	if err := j.fencedError(); err != nil {\n		return err\n	}\n	j.settled", "	j.settled"}}},
	{name: "the owner does not look for newer ones", file: "jobs/journal/journal.go", edits: []edit{
		{"	case n > j.file.epoch:\n		return n, nil\n", ""}}},
	{name: "a write that failed is gone on with, not repeated", file: "jobs/journal/journal.go", edits: []edit{
		{"	j.written = 0\n	return fmt.Errorf(\"cannot write", "	return fmt.Errorf(\"cannot write"}}},
	{name: "what a fenced dispatcher wrote counts", file: "jobs/journal/follower.go", edits: []edit{
		{"	rest, err := f.foldLines(st, t)\n	if err != nil {\n		return err\n	}\n" +
			"	m := *t.mark",
			"	rest, err := f.foldLines(st, target{limit: size, final: true})\n	if err != nil {\n" +
				"		return err\n	}\n	m := *t.mark"}}},
	{name: "records are read without their checksum", file: "jobs/journal/line.go", edits: []edit{
		{"	return body, jobs.IsChecksum(line[:prefix-1], body)", "	return body, true"}}, seeds: 3000},
	{name: "a takeover builds upon what is not durable", file: "jobs/journal/take.go", edits: []edit{
		{"	if err = makeDurable(r, files, t.Epoch); err != nil {\n		return nil, nil, nil, err\n" +
			"	}\n",
			""}}, seeds: 3000},
	{name: "a takeover cuts the end of the journal before it", file: "jobs/journal/follower.go", edits: []edit{
		{"Length: st.length + st.damaged, CRC", "Length: max(1, st.length+st.damaged) - 1, CRC"}}},

	// jobs/attempts and jobs: what counts as a fact.
	{name: "an unfinished status file counts as an outcome", file: "jobs/attempts/status.go", edits: []edit{
		{"bytes.Count(end, []byte{0}) == len(end) {\n		return f\n",
			"bytes.Count(end, []byte{0}) == len(end) {\n		f.State = Finished\n		return f\n"}}, seeds: 3000},
	{name: "a torn sentinel counts as an outcome", file: "jobs/attempts/status.go", edits: []edit{
		{"		f.Damaged = true\n		return f\n	}\n	f.State",
			"		f.State, f.Damaged = Finished, true\n		return f\n	}\n	f.State"}}, seeds: 3000},
	{name: "a sentinel is believed whatever its checksum", file: "jobs/attempts/status.go", edits: []edit{
		{"	if !ok || json.Unmarshal(text, &s) != nil || s.V != jobs.FormatSentinel.Version || s.Run != run " +
			"|| s.Attempt != id {",
			"	if _ = ok; json.Unmarshal(text, &s) != nil && len(text) == 0 {"}}, seeds: 3000},
	{name: "claims are packed after 5 s, whatever the lease is", file: "dispatch/sched/claims.go", edits: []edit{
		{"	c.claims.neededUntil[id] = c.now.Mono + c.LongestLease()\n",
			"	c.claims.neededUntil[id] = c.now.Mono + min(c.LongestLease(), 5*time.Second)\n"}}},
	{name: "a claim is packed at once though its connection has ended", file: "dispatch/sched/link.go", edits: []edit{
		{"		f.sentOverLink = false\n", ""}}},
	{name: "the request to end a job is forgotten", file: "jobs/fold.go", edits: []edit{
		{"		Insert(&t.Cancels, r.Job, Cancel{r.Reason, r.Request, ReasonKind(r.How)})\n", ""}}},
	{name: "a result number is left out", file: "jobs/fold.go", edits: []edit{
		{"		t.Seq, j.Seq = r.Seq, r.Seq\n", "		t.Seq, j.Seq = r.Seq+1, r.Seq\n"}}},
	{name: "a job that has failed is queued again after its result", file: "jobs/fold.go", edits: []edit{
		{"	t.setState(j, r.Next)\n",
			"	if t.setState(j, r.Next); r.Next == Failed && r.Kind == KindExited {\n" +
				"		t.setState(j, Queued)\n	}\n"}}},
	{name: "the result of a job shows its newest attempt", file: "jobs/fold.go", edits: []edit{
		{"			j.Counted = int32(r.N)\n", "			j.Counted = int32(len(j.Attempts))\n"}}},
	{name: "a takeover takes every result for acknowledged", file: "jobs/fold.go", edits: []edit{
		{"		t.Epoch, t.Closed = r.Epoch, Closing{}\n",
			"		t.Epoch, t.Closed, t.Acked = r.Epoch, Closing{}, t.Seq\n"}}},

	// dispatch/sched: the decisions.
	{name: "a suspect host is forgotten at once", file: "dispatch/sched/lost.go", edits: []edit{
		{"return h.lastReceivedAt + h.spec.LostAfterOrDefault() }", "return h.lastReceivedAt }"}}},
	{name: "hosts that were cut off together are waited for without a limit",
		file: "dispatch/sched/outage.go", edits: []edit{
			{"\t\tat = max(at, h.lastReceivedAt+c.outageAfter(h))\n", "\t\tat = timeNever\n"}}, seeds: 1500},
	{name: "recovery forgets what may be running", file: "dispatch/sched/start.go", edits: []edit{
		{"			case a.State.Open():\n				open = true\n",
			"			case a.State.Open() && a.ID.N > 1:\n				open = true\n"}}},
	{name: "unknown is taken for never started", file: "dispatch/sched/probe.go", edits: []edit{
		{"	case hosts.Unknown:\n",
			"	case hosts.Unknown:\n		c.handleNeverStarted(p.Attempt, \"nobody knows\")\n"}}},
	{name: "a host's death uses up a try", file: "dispatch/sched/lost.go", edits: []edit{
		{"\tr.Next = c.stateWithoutResult(j, a)\n\tdied :=",
			"\tr.Next, r.Charged = c.stateWithoutResult(j, a), true\n\tdied :="}}},
	{name: "jobs are sent to a host before a lease has begun", file: "dispatch/sched/hold.go", edits: []edit{
		{"\tcase h.unleased:\n\t\treturn jobs.HeldUnleased\n", ""}}, seeds: 3000},
	{name: "a launch stays in the outbox", file: "dispatch/sched/commands.go", edits: []edit{
		{"		h.outbox = outbox{}\n", "		h.outbox = outbox{launch: o.launch}\n"}}},
	{name: "a device is given to one job too many", file: "dispatch/sched/gpus.go", edits: []edit{
		{"!g.isGone && g.used()+share <= jobs.WholeGPU }", "!g.isGone && g.used()+share <= jobs.WholeGPU+250 }"}}},
	{name: "one try too many", file: "dispatch/sched/retry.go", edits: []edit{
		{"\tcase n >= c.maxTries(j):\n", "\tcase n > c.maxTries(j):\n"}}},
	{name: "a job is stopped on a drained host and never runs again", file: "dispatch/sched/outcome.go", edits: []edit{
		{"r.Kind, r.Next, r.Reason = jobs.KindCanceled, c.stateWithoutResult(j, a), \"killed by an unknown " +
			"process\"",
			"r.Kind, r.Next = jobs.KindCanceled, jobs.Canceled"}}},
	{name: "a pause is not received", file: "dispatch/sched/hostrequest.go", edits: []edit{
		{"	r := jobs.Record{Kind: jobs.KindPause}\n",
			"	e.On = false\n	r := jobs.Record{Kind: jobs.KindPause}\n"}}},
	{name: "what people asked of hosts is forgotten by the next dispatcher",
		file: "dispatch/sched/start.go", edits: []edit{
			{"	c.applyHostRequests()\n", ""}}},
	{name: "a removed host's jobs are queued again at once", file: "dispatch/sched/hostset.go", edits: []edit{
		{"	h.withdrawAll()\n}\n\n// changeHost",
			"	h.withdrawAll()\n	for h.oldest != nil {\n" +
				"		c.loseAttempt(h.oldest, \"its host is removed\")\n	}\n}\n\n// changeHost"}}},
	{name: "settled by the machine at the new address", file: "dispatch/sched/hostset.go", edits: []edit{
		{"		c.reclassifyTried(func() { c.changeMachine(h, machine) })", "		h.machine = machine"},
		{"	return h.spec.Name == name && (machine == 0 || h.machine == machine)",
			"	return h.spec.Name == name"}}},
	{name: "a reload forgets a host added by request", file: "hosts/inventory.go", edits: []edit{
		{"		if names[name] || asked[name].Removed {", "		if len(inv.Hosts) > 0 {"}}},
	{name: "an instance is created before its record", file: "dispatch/commit/block.go", edits: []edit{
		{"			case sched.Launch, sched.CreateInstance, sched.TerminateInstance:",
			"			case sched.Launch:"}}, seeds: 3000},
	{name: "an instance is terminated with open attempts", file: "dispatch/sched/provide.go", edits: []edit{
		{"	if open > 0 {\n		in.idleAt = 0\n		return\n	}\n", ""}}},
	{name: "an instance is terminated before its outputs were fetched",
		file: "dispatch/sched/provide.go", edits: []edit{
			{"\tcase kept != \"\" && in.state != instanceTerminating:",
				"\tcase kept != \"\" && in.state == instanceTerminating:"}}},
	{name: "the end of the run waits for no instance", file: "dispatch/sched/provide.go", edits: []edit{
		{"	return c.now.Mono < c.provisions.endBy\n", "	return false\n"}}},
	{name: "a dispatcher forgets the instances of the one before", file: "dispatch/sched/instances.go", edits: []edit{
		{"		if is.State == jobs.InstanceGone {\n			continue",
			"		if is.State != jobs.InstanceUp {\n			continue"}}},
	{name: "a drained host gets jobs", file: "dispatch/sched/host.go", edits: []edit{
		{"return h.isDrained() || h.isQuiet", "return h.isQuiet"}}},
	{name: "jobs are started in quiet hours", file: "dispatch/sched/host.go", edits: []edit{
		{" || h.isQuiet || h.removed", " || h.removed"}}},
	{name: "a timeout says nothing of harder jobs", file: "dispatch/sched/hardness/hardness.go", edits: []edit{
		{"\tx.addTimeout(t.family, knownTimeout{t.components, x.limits.UsedBy(j), id})\n", "	_ = t\n"}}},
	{name: "what runs and is too hard goes on", file: "dispatch/sched/hardness.go", edits: []edit{
		{"f != nil && !f.killed {\n				c.killAttempt(f, why)",
			"f != nil && f.killed {\n				c.killAttempt(f, why)"}}},
	{name: "a new dispatcher knows of no timeout", file: "dispatch/sched/hardness/hardness.go", edits: []edit{
		{"	if j.State == jobs.TimedOut {\n		x.recordTimeout(id, j)\n	}\n", ""}}},
	{name: "a harder job may have what one component says", file: "dispatch/sched/hardness/hardness.go", edits: []edit{
		{"\tfor i, x := range b.components {\n\t\tif !x.AtMost(at[i]) {",
			"\tfor i, x := range b.components[:1] {\n\t\tif !x.AtMost(at[i]) {"}}},
	{name: "hardness of one text is compared with that of another", file: "jobs/spec.go", edits: []edit{
		{"	return a == b\n}", "	return a.IsNum == b.IsNum\n}"}}},
	{name: "a timeout counts though its job runs again", file: "dispatch/sched/hardness/hardness.go", edits: []edit{
		{"\t\tx.stale, x.TupleOf(j.Spec).family.stale = true, true\n", ""}}},
	{name: "a requeue opens two rounds", file: "dispatch/sched/request.go", edits: []edit{
		{"	if r.Name == \"\" || c.table.Requests[r.Name] ||", "	if r.Name == \"\" ||"}}, seeds: 3000},
	{name: "a request for an earlier dispatcher is carried out", file: "dispatch/sched/request.go", edits: []edit{
		{"	if r.Epoch != 0 && r.Epoch != c.table.Epoch {", "	if r.Epoch < 0 {"}}},
	{name: "a pause is recorded without the request that asked for it", file: "dispatch/sched/core.go", edits: []edit{
		{"	r.At, r.Request = c.now.Wall, cmp.Or(r.Request, c.cause)\n",
			"	r.At = c.now.Wall\n	if r.Kind != jobs.KindPause {\n" +
				"		r.Request = cmp.Or(r.Request, c.cause)\n	}\n"}}},
	{name: "an edit leaves what ran by the old command in its round", file: "jobs/fold.go", edits: []edit{
		{"				a.Round = 0\n", "				_ = a\n"}}, seeds: 3000},
	{name: "a job gets a host that has only some of its tags", file: "dispatch/sched/class.go", edits: []edit{
		{"		if !slices.Contains(h.spec.Tags, t) {",
			"		if t != cl.tags[0] && !slices.Contains(h.spec.Tags, t) {"}}},
	{name: "an edited job is launched as one of its old class", file: "dispatch/sched/class.go", edits: []edit{
		{"(len(j.Attempts) == 0 && !c.queue.hasStaleEntries || c.classOf(j) == cl)",
			"(len(j.Attempts) == 0 || c.classOf(j) == cl)"}}, seeds: 3000},
	{name: "what a host cannot tell of is taken for nothing", file: "dispatch/sched/reconcile.go", edits: []edit{
		{"	case p.Answer == hosts.NeverStarted:\n",
			"	case p.Answer == hosts.Unknown || p.Answer == hosts.NeverStarted:\n"}}, isBattered: true},
	{name: "a damaged end of the journal is taken for a line that was never completed",
		file: "jobs/journal/line.go", edits: []edit{
			{"	return isLineBeginning(b), nil", "	return len(b) >= 0, nil"}}, seeds: 3000, isBattered: true},
	{name: "an attempt without the record of its launch has no host", file: "jobs/fold.go", edits: []edit{
		{"	if a.Host == \"\" {\n		a.Host = r.Host\n	}\n", ""}}, seeds: 3000, isBattered: true},
	{name: "a journal that has lost its end is taken for whole", file: "jobs/journal/take.go", edits: []edit{
		{"	missing, err := checkOwner(r, files, &had, owner)",
			"	_, err = checkOwner(r, files, &had, owner)\n	var missing []string"}}, seeds: 3000},
	{name: "launching begins before the hosts have listed their attempts",
		file: "dispatch/sched/reconcile.go", edits: []edit{
			{"\t\tc.reconcileUntil = c.reconcileDeadline()\n", "		c.reconcileUntil = 0\n"}}, cuts: true},
	{name: "an edit loses its timeout in the journal", file: "jobs/record_codec.go", edits: []edit{
		{"	if r.Spec != nil {\n", "	if r.Spec != nil {\n		r.Spec.Timeout = 0\n"}}},
	{name: "a new dispatcher forgets the tokens of what runs", file: "dispatch/sched/attempt.go", edits: []edit{
		{"\tc.addPoolUse(f, 1)\n", "\tif c.numLaunched > 0 {\n\t\tc.addPoolUse(f, 1)\n\t}\n"}}},
	{name: "what is buffered holds no tokens", file: "dispatch/sched/class.go", edits: []edit{
		{"k.mem == 0 && k.tokens == \"\"", "k.mem == 0"}}},
	{name: "a step launches one job too many", file: "dispatch/sched/place.go", edits: []edit{
		{"return c.numLaunched >= c.cfg.MaxLaunches }", "return c.numLaunched > c.cfg.MaxLaunches }"}}},
	{name: "kept slots are given to other queues", file: "dispatch/sched/reserve.go", edits: []edit{
		{"	return h.freeSlots() - others.Slots,", "	return h.freeSlots(),"}}},
	{name: "jobs are started on a host whose owner is there", file: "dispatch/sched/hold.go", edits: []edit{
		{"\tcase b.Owner.Who != \"\":\n\t\treturn jobs.HeldByOwner\n", ""}}},
	{name: "two users get the last slot of a host", file: "hosts/sharing.go", edits: []edit{
		{"	if held <= slots {", "	if held <= slots+1 {"}}},
	{name: "a run beside another one of its user waits for it", file: "hosts/sharing.go", edits: []edit{
		{" || claims[me].Held <= 1 && held <= slots+1)", ")"}}},
	{name: "the slots of a user who has gone stay his", file: "dispatch/sched/hold.go", edits: []edit{
		{"\th.heartbeat, h.isMeasured = *b, true\n",
			"\tif b.Sharing == nil && h.isMeasured {\n\t\tb.Sharing = h.heartbeat.Sharing\n\t}\n" +
				"\th.heartbeat, h.isMeasured = *b, true\n"}}},
	{name: "a copy more than allowed", file: "dispatch/sched/copies.go", edits: []edit{
		{"	return open < c.cfg.Copies &&", "	return open <= c.cfg.Copies &&"}}, seeds: 2000},
	{name: "copy of a copy: copies are not counted", file: "dispatch/sched/copies.go", edits: []edit{
		{"			open++", "			open = 1"}}, seeds: 2000},
	{name: "a job that forbids copies is copied", file: "dispatch/sched/copies.go", edits: []edit{
		{"	if j.Spec.NoCopies || c.isCancelPending", "	if c.isCancelPending"}}},
	{name: "copies beyond the tries", file: "dispatch/sched/copies.go", edits: []edit{
		{"int(j.Failures)+open < c.maxTries(j)", "int(j.Failures)+open <= c.maxTries(j)"}}, seeds: 2000},
	{name: "a copy on the same host", file: "dispatch/sched/class.go", edits: []edit{
		{"		case a.State.Open():\n", "		case a.State.Open() && len(j.Attempts) == 0:\n"}}, seeds: 2000},
	{name: "a copy that lost uses up a try", file: "dispatch/sched/outcome.go", edits: []edit{
		{"\t\tr.Kind, r.Next, r.Reason = jobs.KindSuperseded, c.stateWithoutResult(j, a), \"its job had its " +
			"result already\"\n",
			"\t\tr.Kind, r.Next, r.Reason, r.Charged = jobs.KindSuperseded, c.stateWithoutResult(j, a), " +
				"\"its job had its result already\", true\n"}}, seeds: 2000},
	{name: "the result of a copy replaces the first", file: "dispatch/sched/outcome.go", edits: []edit{
		{"	case j.State.Terminal() || a.Round != j.Round:\n		r.Kind",
			"	case !o.OK() && (j.State.Terminal() || a.Round != j.Round):\n		r.Kind"}}, seeds: 2000},
	{name: "the first verdict counts, whatever the hosts", file: "dispatch/sched/retry.go", edits: []edit{
		{"	v := c.judge(j, r.N)\n", "	v := atFault\n"}}, badHosts: true},
	{name: "a job returns to a host where it failed", file: "dispatch/sched/class.go", edits: []edit{
		{"	if failed == nil {\n		failed = died\n	}\n", "	failed = died\n"}}, badHosts: true},
	{name: "no failure ever shows that a job is at fault", file: "dispatch/sched/verdict.go", edits: []edit{
		{"	if numFailures >= c.maxFailures(j) || numProven >= max(c.maxTries(j), minHosts) || " +
			"c.isIncriminated(j) {\n" +
			"		return atFault\n	}\n",
			"	if numProven < 0 {\n		return atFault\n	}\n"},
		{"	v := atFault\n	enough", "	v := runElsewhere\n	enough"}}, badHosts: true},
	{name: "broken jobs put a host on probation", file: "dispatch/sched/probation.go", edits: []edit{
		{"	if contradicted == 0 || !c", "	if !c"}}, badHosts: true},

	// The simulated hosts: what helper and supervisor promise.
	{name: "host: no claim, and a launch is taken twice", file: "dispatch/sim/start.go", edits: []edit{
		{"		return err\n	}\n	return h.writeTo(f, h.token(id, tombstone)",
			"		return nil\n	}\n	return h.writeTo(f, h.token(id, tombstone)"}}},
	{name: "host: a new machine has the id of the old one", file: "dispatch/sim/host.go", edits: []edit{
		{"Machine: h.id,", "Machine: h.name,"}}},
	{name: "host: the epoch is ignored", file: "dispatch/sim/helper.go", edits: []edit{
		{"	if p.h.fence > epoch {\n		return p.h.fence\n	}\n	return 0", "	return 0"},
		{"\tif h.fence > p.epoch {\n\t\tp.newerDispatcher = h.fence\n\t\treturn p\n\t}\n\th.fence = p.epoch\n",
			"	h.fence = max(h.fence, p.epoch)\n"}}},
	{name: "host: the lease is ignored", file: "dispatch/sim/start.go", edits: []edit{
		{"\t\tif h.uptime() > h.lease {\n\t\t\th.reportLapsed(s.id)\n\t\t\tcontinue\n\t\t}\n", ""},
		{"	if h.uptime() > r.lease {", "	if false {"}}, seeds: 3000},
	{name: "host: never started, and no tombstone is made", file: "dispatch/sim/start.go", edits: []edit{
		{"	if err := h.claim(id, true); err != nil {\n" +
			"		return attempts.Fate{Attempt: id, State: attempts.Unreadable}\n	}\n" +
			"	f, _ := h.readFate(id)\n	return f\n",
			"	return attempts.Fate{Attempt: id, State: attempts.NeverStarts}\n"}}, seeds: 3000},
	{name: "host: a lease outlives a reboot", file: "dispatch/sim/helper.go", edits: []edit{
		{"	rebooted := h.spoolBoot != h.boot", "	rebooted := false"}}, seeds: 3000},
	{name: "host: a repeated launch is taken for the next attempt", file: "dispatch/sim/helper.go", edits: []edit{
		{"			known = append(known, k)\n			continue\n",
			"			known = append(known, k)\n" +
				"			h.spool = append(h.spool, spooled{jobs.AttemptID{Job: j.Attempt.Job, " +
				"N: j.Attempt.N + 1}, " +
				"j.Spec, j.Timeout, j.GPUs})\n" +
				"			continue\n"}}},
	{name: "host: a helper that leaves says that it is fenced", file: "dispatch/sim/helper.go", edits: []edit{
		{"	if h.fence > p.epoch {\n		p.sendEvent", "	if h.fence >= p.epoch {\n		p.sendEvent"}}},
	{name: "host: processes of a failed job live on", file: "dispatch/sim/start.go", edits: []edit{
		{"	r.outcome = o\n	r.die()\n", "	if r.outcome = o; o.OK() {\n		r.die()\n	}\n"}}},
	{name: "host: processes of a job that has succeeded live on", file: "dispatch/sim/start.go", edits: []edit{
		{"	r.outcome = o\n	r.die()\n",
			"	if r.outcome = o; !o.OK() || !h.w.faultsAreOver() {\n		r.die()\n	}\n"}}},
	{name: "host: withdrawn jobs stay in the spool", file: "dispatch/sim/host.go", edits: []edit{
		{"\t\t\tp.h.spool = append(p.h.spool[:i:i], p.h.spool[i+1:]...)\n\t\t\tp.waiting.del(id)\n",
			"			_ = i\n			p.waiting.del(id)\n"}}},
	{name: "host: an attempt is called dead and lives on", file: "dispatch/sim/helper.go", edits: []edit{
		{"		if r != nil {\n			r.die()\n		}\n		a.Answer", "		a.Answer"},
		{"\tif r := h.heldAttempt(id); r != nil && !r.supervisorLives {\n\t\tr.die()\n",
			"\tif r := h.heldAttempt(id); r != nil && !r.supervisorLives {\n"}}},
	{name: "host: more slots busy than there are", file: "dispatch/sim/start.go", edits: []edit{
		{" <= h.limit {\n\t\ts := h.spool[0]", " <= h.limit+1 {\n\t\ts := h.spool[0]"}}, seeds: 3000},
	{name: "host: an outcome is reported before it is known", file: "dispatch/sim/start.go", edits: []edit{
		{"\t\tp.sendEvent(sched.AttemptsStarted{Host: h.name, Msg: &hosts.Started{\n" +
			"\t\t\tJobs: []hosts.StartedJob{{Attempt: r.spooled.id, Slot: r.slot, At: r.started}}}})\n",
			"\t\tp.sendEvent(sched.AttemptsEnded{Host: h.name, Msg: &hosts.Exits{Jobs: []hosts.ExitedJob{{" +
				"Attempt: r.spooled.id, Outcome: jobs.Outcome{Started: r.started, Ended: r.started}}}}})\n"}}},
}
