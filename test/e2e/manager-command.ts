/** Flags with the subcommand that the one-process program needs. */
export function flagsOf(command: string, flags: readonly string[]): readonly string[] {
  return command === 'machinist' ? ['run', ...flags] : flags;
}

/** What was logged as an error; with a stack it is no string. */
export function errorsIn(log: string): readonly unknown[] {
  return log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { level: string; err?: unknown })
    .filter(({ level }) => level === 'error')
    .map(({ err }) => err);
}
