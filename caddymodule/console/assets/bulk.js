// What ends all tasks that a filter selects.
import { action, reasonDialog } from "./actions.js";
import { get, post, RequestError } from "./api.js";

const most = 1000; // tasks that one press ends
const atOnce = 8; // requests

const ways = [
  ["cancel", "Cancel", "canceled", "Their agents are asked to stop."],
  ["fail", "Fail", "failed", "They end as failed, whatever their agents answer."],
];

// bulkActions makes the buttons for what may be done. queryOf returns the filter, and statesOf the states of tasks that
// have not ended in it. say is called with a sentence, and whether it is an error.
export function bulkActions(may, queryOf, statesOf, say) {
  return ways.filter(([way]) => may.has(way)).map(([way, label, done, text]) =>
    action(`${label} the tasks of this filter`, async () => {
      const tasks = await select(queryOf(), statesOf());
      if (tasks.length === 0) return say("No task of the filter is under way.", false);
      const reason = await reasonDialog(`${label} ${count(tasks.length)}?`,
        `${text} At most ${most} at a time. The Leaders see that the operator did it, and the reason.`);
      if (reason === null) return;
      const refused = await end(tasks, way, reason);
      const sentence = `${count(tasks.length - refused.length)} ${done}.`;
      if (refused.length === 0) say(sentence, false);
      else say(`${sentence} ${count(refused.length)} not, the first because: ${refused[0]}`, true);
    }, (why) => say(why, true)));
}

const count = (n) => `${n} task${n === 1 ? "" : "s"}`;

// select returns the tasks of a filter that are in one of the states, and not more than may be ended.
async function select(query, states) {
  const tasks = [];
  for (const state of states) {
    for (let after = ""; tasks.length < most;) {
      const page = await get("tasks", { ...query, state, after, limit: 100 });
      tasks.push(...page.tasks);
      if (!page.next) break;
      after = page.next;
    }
  }
  return tasks.slice(0, most);
}

// end ends tasks, and returns why those have not ended that have not.
async function end(tasks, way, reason) {
  const left = [...tasks];
  const refused = [];
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (let task; (task = left.shift());) {
      const { partner, leader, task: name } = task;
      try {
        await post(`tasks/${way}`, {}, { partner, leader, task: name, reason });
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        refused.push(error.message);
      }
    }
  }));
  return refused;
}
