/** A flag or a combination of flags that cannot be obeyed; the message names flag, value and what is allowed. */
export class FlagError extends Error {
  override readonly name = 'FlagError';
}
