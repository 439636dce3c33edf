// SPDX-License-Identifier: Apache-2.0

// The command line, read as the Go programs here read theirs: one dash or two, flags anywhere.

/**
 * UsageError is a mistake of who wrote the command line.
 */
export class UsageError extends Error {}

/**
 * parse sets flags from a command line and returns its other words. A flag whose value is false so far takes none;
 * a number stays a number.
 */
export function parse(line, flags) {
  const words = [];
  for (let i = 0; i < line.length; i++) {
    const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(line[i]);
    if (!match) {
      words.push(line[i]);
      continue;
    }
    const [, name, given] = match;
    if (!Object.hasOwn(flags, name)) throw new UsageError(`there is no flag -${name}`);
    if (flags[name] === false) {
      flags[name] = true;
      continue;
    }
    const value = given ?? line[++i];
    if (value === undefined) throw new UsageError(`-${name} needs a value`);
    flags[name] = typeof flags[name] === 'number' ? Number(value) : value;
    if (Number.isNaN(flags[name])) throw new UsageError(`-${name} needs a number`);
  }
  return words;
}
