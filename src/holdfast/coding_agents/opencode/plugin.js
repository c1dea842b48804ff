// Tells Holdfast what opencode does, so that every step is a checkpoint that can be gone back to.
// `holdfast hook uninstall opencode` removes this file; one that was edited is left alone.
import { spawn } from "node:child_process"
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const COMMAND = []

const PATIENCE = 10_000 // milliseconds that the agent waits for the command
const IMPATIENCE = 500 // the same, while it is known to be slow
const LIFETIME = 120_000 // after so long it is ended
const WAITING = 100 // events behind one that is slow; the next are left out
const SIDE_BY_SIDE = 150 // milliseconds in which calls that run together may end together
const LARGEST = 60_000_000 // bytes of an event; of a larger one the conversation is left out
const MCP_TEXT = 30_000 // opencode itself may shorten a result that is longer
const REMEMBERED = 1_000 // calls

const HERE = Symbol.for("holdfast.opencode")

export const Holdfast = async ({ client, directory }) => {
  // Installed for the user and for the project, it is loaded twice: the last, the project's, tells.
  const here = (globalThis[HERE] ??= new Map())
  const isThis = () => here.get(directory) === import.meta.url
  here.set(directory, import.meta.url)

  const parents = new Map() // of sessions: null for one that a user began
  const results = new Map() // of calls that were told, for until opencode has written them
  const errors = new Map() // of sessions that are about to stop
  const open = new Map() // the calls of each session that have not ended
  const busy = new Set() // sessions of which something was told since they were idle
  let patience = PATIENCE
  let waiting = 0
  let running // the command, while it runs
  let queue = Promise.resolve()

  function inOrder(work) {
    if (waiting >= WAITING) return
    waiting++
    queue = queue.then(work).catch(() => {})
    queue = queue.then(() => void waiting--)
  }
  const within = (promise, milliseconds) => {
    let timer
    const late = new Promise((resolve) => (timer = setTimeout(resolve, milliseconds)))
    return Promise.race([promise, late]).finally(() => clearTimeout(timer))
  }
  async function recorded() {
    const isDone = await within(queue.then(() => true), patience)
    patience = isDone ? PATIENCE : IMPATIENCE
    return isDone
  }
  const safely =
    (callback) =>
    async (...given) => {
      try {
        if (isThis()) await callback(...given)
      } catch {} // recording is never in the agent's way
    }

  const asked = async (answer) => {
    try {
      return (await within(answer, PATIENCE))?.data
    } catch {} // the files are kept without it
  }
  const sessionOf = (id) => asked(client.session.get({ path: { id } }))

  async function rootOf(id) {
    for (let depth = 0; depth < 20; depth++) {
      const session = parents.has(id) ? undefined : await sessionOf(id)
      if (session) parents.set(id, session.parentID ?? null)
      if (!parents.get(id)) break
      id = parents.get(id)
    }
    return id
  }

  // Some models give the calls of every turn the same ids.
  const keyOf = (session, callID) => `${session}/${callID}`

  function begun(session, callID) {
    results.delete(keyOf(session, callID))
    if (!open.has(session)) open.set(session, new Set())
    open.get(session).add(callID)
  }

  // What is done by calls side by side is in the files together: so should be their results.
  async function neighboursEnded(session) {
    for (let waited = 0; waited < SIDE_BY_SIDE && open.get(session)?.size; waited += 10) {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  function withResult(part) {
    if (part.type !== "tool") return part
    const ended = results.get(keyOf(part.sessionID, part.callID))
    if (!ended?.result || !["pending", "running"].includes(part.state?.status)) return part
    const { start } = part.state.time ?? { start: ended.at }
    const time = { start, end: ended.at }
    return { ...part, state: { status: "completed", input: ended.input, ...ended.result, time } }
  }

  async function conversationOf(id) {
    const [info, messages] = await Promise.all([
      sessionOf(id),
      asked(client.session.messages({ path: { id } })),
    ])
    if (!info || !Array.isArray(messages)) return undefined
    const whole = messages.map((each) => ({ ...each, parts: each.parts.map(withResult) }))
    return { info, messages: whole }
  }

  function lastMessageOf(conversation) {
    const last = conversation?.messages.findLast((each) => each.info.role === "assistant")
    const texts = last?.parts.filter((part) => part.type === "text").map((part) => part.text)
    return texts?.join("\n") || undefined
  }

  function messageOf(conversation, callID) {
    const isOf = (part) => part.type === "tool" && [part.callID, part.id].includes(callID)
    return conversation?.messages.findLast((each) => each.parts.some(isOf))?.info.id
  }

  async function tell(session, event, what) {
    busy.add(session)
    const root = await rootOf(session)
    if (what.call_id) await neighboursEnded(session)
    const conversation = await conversationOf(session)
    const told = { event, session: root, cwd: directory, ...what, conversation }
    if (root !== session) {
      told.subagent_id = session
      told.subagent_type = conversation?.info.agent
    }
    if (what.call_id) told.turn_id = messageOf(conversation, what.call_id)
    if (event.endsWith(".idle")) told.last_message = lastMessageOf(conversation)
    const text = JSON.stringify(told)
    const isLarge = Buffer.byteLength(text) > LARGEST
    await run(isLarge ? JSON.stringify({ ...told, conversation: undefined }) : text)
  }

  // The event is in a file that is gone once it is open: whatever becomes of opencode meanwhile,
  // the command has all of it.
  async function run(text) {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-"))
    let file
    try {
      const path = join(folder, "event.json")
      writeFileSync(path, text, { mode: 0o600 })
      file = openSync(path, "r")
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
    try {
      const [command, ...words] = COMMAND
      const stdio = [file, "ignore", "ignore"]
      // A group of its own: Ctrl+C in opencode is not meant for it, and all of it can be ended.
      running = spawn(command, words, { cwd: directory, stdio, detached: true })
      const ended = new Promise((resolve) => running.on("error", resolve).on("exit", resolve))
      if ((await within(ended.then(() => true), LIFETIME)) !== true) end()
    } finally {
      running = undefined
      closeSync(file)
    }
  }

  function end() {
    if (running?.pid) process.kill(-running.pid, "SIGKILL")
  }

  function resultOf(output) {
    if (typeof output?.output === "string") {
      const { title = "", metadata = {}, attachments } = output
      return { title, metadata, output: output.output, attachments }
    }
    const content = Array.isArray(output?.content) ? output.content : []
    const text = content.map((each) => (each.type === "text" ? each.text : null))
    if (!content.length || text.includes(null)) return undefined
    const whole = text.join("\n\n")
    const metadata = { ...output.metadata, truncated: false }
    return whole.length > MCP_TEXT ? undefined : { title: "", metadata, output: whole }
  }

  function remember(session, callID, input, result) {
    open.get(session)?.delete(callID)
    results.set(keyOf(session, callID), { input, result, at: Date.now() })
    if (results.size > REMEMBERED) results.delete(results.keys().next().value)
  }

  // Calls that threw, and commands that the user ran, have no callback of their own.
  function partUpdated(part) {
    const { status } = part.state ?? {}
    if (part.type !== "tool" || !["completed", "error"].includes(status)) return
    if ([part.callID, part.id].some((id) => results.has(keyOf(part.sessionID, id)))) return
    remember(part.sessionID, part.callID, part.state.input, undefined)
    const { input, title, output, metadata, error } = part.state
    inOrder(() =>
      tell(part.sessionID, "tool.execute.after", {
        tool: part.tool,
        input,
        output: status === "completed" ? { title, output, metadata } : undefined,
        error: status === "error" ? error || "failed" : undefined,
        call_id: part.callID,
      }),
    )
  }

  function idle(session) {
    const error = errors.get(session)
    errors.delete(session)
    open.delete(session)
    inOrder(async () => {
      if (!busy.has(session)) return // it is said once more after an error
      const event = (await rootOf(session)) === session ? "session.idle" : "subagent.idle"
      await tell(session, event, { error })
      busy.delete(session)
    })
  }

  return {
    "chat.message": safely(async ({ sessionID }, { message, parts }) => {
      const texts = parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = texts.map((part) => part.text).join("\n")
      inOrder(() => tell(sessionID, "chat.message", { prompt, prompt_id: message.id }))
      await recorded()
    }),

    // What the last call left is recorded before the next one begins.
    "tool.execute.before": safely(async ({ sessionID, callID }) => {
      begun(sessionID, callID)
      await recorded()
    }),

    "tool.execute.after": safely(async ({ tool, sessionID, callID, args }, output) => {
      const result = resultOf(output)
      remember(sessionID, callID, args, result)
      const { attachments, ...shown } = result ?? { output: output?.content }
      const what = { tool, input: args, output: shown, call_id: callID }
      inOrder(() => tell(sessionID, "tool.execute.after", what))
      await recorded()
    }),

    event: safely(async ({ event }) => {
      const { type, properties } = event
      if (type === "message.part.updated") partUpdated(properties.part)
      if (type === "session.error" && properties.sessionID) {
        const { name, data } = properties.error ?? {}
        errors.set(properties.sessionID, data?.message || name || "failed")
      }
      if (type === "session.idle") idle(properties.sessionID)
    }),

    dispose: safely(async () => {
      if (!(await recorded())) end()
    }),
  }
}
