/** Longest message that the API server takes. */
export const LONGEST_MESSAGE = 1_024;

const PREFIX = '(combined from similar events): ';

/**
 * The message of an Event that stands for several: what the messages begin with, once, then what tells them apart; with the
 * words of client-go in front. One that alone is too long is cut.
 */
export function combinedMessage(messages: readonly string[]): string {
  const common = commonBeginning(messages);
  const text =
    common === '' ? messages.join('; ') : common + messages.map((message) => message.slice(common.length)).join(', ');
  return `${PREFIX}${text}`;
}

export function truncated(message: string): string {
  return message.length <= LONGEST_MESSAGE ? message : `${message.slice(0, LONGEST_MESSAGE - 1).toWellFormed()}…`;
}

/** The words, each with the space behind it, that all messages begin with. */
function commonBeginning([first = '', ...others]: readonly string[]): string {
  let length = first.lastIndexOf(' ') + 1;
  for (const other of others) {
    while (length > 0 && !other.startsWith(first.slice(0, length))) {
      length = first.lastIndexOf(' ', length - 2) + 1;
    }
  }
  return first.slice(0, length);
}
