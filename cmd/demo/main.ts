import { HELP_HINT } from '../../pkg/operator/config/command-line.ts';
import { parseCommand } from '../parse-command.ts';
import { demoCommand } from './command.ts';

await parseCommand(demoCommand().showHelpAfterError(HELP_HINT).exitOverride(), process.argv.slice(2));
