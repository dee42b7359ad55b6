/** The wait for a turn at a provider was given up: nothing was sent. */
export class TurnGivenUpError extends Error {
  override readonly name = 'TurnGivenUpError';
}
