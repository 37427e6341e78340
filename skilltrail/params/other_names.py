"""What the reference implementation (and other optimizers) call our knobs.

A name leads to our key, or to words where there is no key of its own: what is derived, what
lies with an environment, what was left out and why. Source of the names: microsoft/SkillOpt @
bdfdc30, `skillopt/config.py`, `scripts/train.py` and its configs.
"""

from __future__ import annotations

from collections.abc import Sequence

_ROLES = ("target", "optimizer")

OTHER_NAMES = {
    "num_epochs": "epochs", "learning_rate": "lr", "edit_budget": "lr", "steps": "epochs",
    "min_learning_rate": "lr_min", "min_edit_budget": "lr_min", "lr_scheduler": "lr_schedule",
    "lr_control_mode": "lr_schedule", "skill_update_mode": "update_mode",
    "environment": "env", "batch": "batch_size", "skill_init": "skill.seed",
    "gate_metric": "gate.metric", "gate_mixed_weight": "gate.mixed_weight",
    "eval_test": "evaluate.enabled", "evaluation": "evaluate.enabled",
    "split_mode": "data.split_dir", "split_ratio": "data.ratio",
    "split_seed": "data.split_seed", "split_dir": "data.split_dir", "data_path": "data.path",
    "train_size": "data.limit.train", "sel_env_num": "data.limit.selection",
    "test_env_num": "data.limit.test",
    "minibatch_size": "reflect.minibatch_size", "failure_only": "reflect.success",
    "analyst_workers": "optimizer.workers", "codex_trace_to_optimizer": "reflect.show",
    "use_slow_update": "slow_update.enabled", "slow_update_samples": "slow_update.samples",
    "slow_update_gate_with_selection": "slow_update.mode",
    "longitudinal_pair_policy": "slow_update.pairs", "use_meta_skill": "meta_skill.enabled",
    "use_skill_aware_reflection": "skill_aware.enabled",
    "skill_aware_appendix_source": "skill_aware.source",
    "skill_aware_consolidate_threshold": "skill_aware.consolidate_over",
    "judge_model": "judge.model", "judge_backend": "judge.backend",
    "judge_max_completion_tokens": "judge.max_tokens", "judge_retries": "judge.retry.attempts",
    "workers": "target.workers", "max_api_workers": "target.workers",
    "rewrite_reasoning_effort": "optimizer.stages.rewrite.effort",
    "rewrite_max_completion_tokens": "optimizer.stages.rewrite.max_tokens",
}  # fmt: skip

# Of a role, named with the role in front of it or without (then the target's).
_OF_A_ROLE = {
    "backend": "backend", "model": "model", "deployment": "azure.deployment",
    "max_completion_tokens": "max_tokens", "reasoning_effort": "effort",
    "azure_endpoint": "azure.endpoint", "azure_api_version": "azure.api_version",
    "azure_api_key": "key_env", "azure_openai_endpoint": "azure.endpoint",
    "azure_openai_api_version": "azure.api_version", "azure_openai_api_key": "key_env",
    "azure_openai_auth_mode": "azure.auth", "azure_openai_ad_scope": "azure.scope",
    "azure_openai_managed_identity_client_id": "azure.client_id",
    "qwen_chat_base_url": "base_url", "qwen_chat_api_key": "key_env",
    "qwen_chat_temperature": "temperature", "qwen_chat_timeout_seconds": "timeout_s",
    "qwen_chat_max_tokens": "max_tokens", "qwen_chat_enable_thinking": "thinking",
    "qwen_chat_thinking_mode": "thinking", "minimax_region": "region",
    "minimax_base_url": "base_url", "minimax_api_key": "key_env", "minimax_model": "model",
    "minimax_temperature": "temperature", "minimax_max_tokens": "max_tokens",
    "minimax_enable_thinking": "thinking", "codex_exec_path": "exec.path",
    "codex_exec_sandbox": "exec.sandbox", "codex_exec_profile": "exec.profile",
    "codex_exec_reasoning_effort": "effort", "codex_exec_use_sdk": "exec.use_sdk",
    "codex_exec_network_access": "exec.network", "codex_exec_web_search": "exec.web_search",
    "codex_exec_approval_policy": "exec.approval_policy",
    "claude_code_exec_path": "exec.path", "claude_code_exec_profile": "exec.profile",
    "claude_code_exec_use_sdk": "exec.use_sdk", "claude_code_exec_effort": "effort",
    "claude_code_exec_max_thinking_tokens": "exec.max_thinking_tokens",
    "cursor_exec_path": "exec.argv", "cursor_exec_sandbox": "exec.argv",
    "copilot_exec_path": "exec.argv", "copilot_exec_home": "exec.env",
    "copilot_exec_allow_all_tools": "exec.argv", "copilot_chat_timeout": "timeout_s",
    "copilot_chat_optimizer_model": "model", "copilot_chat_target_model": "model",
}  # fmt: skip

_SEARCH = "left out: answers found on the web are nobody's to repeat"
_DENSITY = "left out: a text stuffed with MUST and ALWAYS wins ties"
_DERIVED = "derived here: train items / (batch_size * accumulation), rounded up"
INSTEAD = {
    "train": "its keys stand alone here, such as epochs, batch_size and accumulation",
    "gradient": "see reflect, merge_batch_size and optimizer.workers",
    "limit": "here it is called data.limit.train, .selection and .test",
    "steps_per_epoch": _DERIVED,
    "out_root": "results have fixed places here, told in docs/knobs.md",
    "split_output_dir": "splits have a fixed place here: data/splits",
    "meta_learning_rate": "left out: nothing reads it there",
    "meta_edit_budget": "left out: nothing reads it there",
    "max_analyst_rounds": "left out: nothing reads it there",
    "use_semantic_density": _DENSITY, "semantic_density_weight": _DENSITY,
    "leading_words": _DENSITY,
    "data_root": "here it is the environment's own, such as envs.docvqa.data_dirs",
    "data_dirs": "here it is the environment's own, such as envs.officeqa.data_dirs",
    "exec_timeout": "here it is the environment's own, such as envs.spreadsheet.limits.run_s",
    "max_turns": "here it is the environment's own, such as envs.spreadsheet.limits.turns",
    "max_steps": "here it is called envs.alfworld.limits.turns",
    "max_tool_turns": "here it is called envs.officeqa.limits.tool_turns",
    "max_queries_per_turn": "here it is called envs.officeqa.queries_per_turn",
    "mode": "here it is called envs.spreadsheet.agent",
    "shuffle_choices": "here it is called envs.livemath.shuffle_choices",
    "use_theorem": "here it is called envs.livemath.use_theorem",
    "use_sketch": "here it is called envs.livemath.use_sketch",
    "image_detail": "here it is called envs.docvqa.image_detail",
    "search_api_url": _SEARCH, "search_auth_env": _SEARCH, "search_max_num_results": _SEARCH,
    "search_mode": _SEARCH, "search_provider": _SEARCH, "search_timeout_seconds": _SEARCH,
}  # fmt: skip


def hint_of(key: str, keys: Sequence[str]) -> str | None:
    """Return what a foreign name is called here, among `keys`, or why it is not there."""
    last = key.rpartition(".")[2]
    ours = OTHER_NAMES.get(key, OTHER_NAMES.get(last))
    if ours is None:
        ours = _of_a_role(last)
    if ours in keys:
        return f"here it is called {ours}"
    return INSTEAD.get(last)


def _of_a_role(name: str) -> str | None:
    for role in _ROLES:
        if name.startswith(f"{role}_") and name[len(role) + 1 :] in _OF_A_ROLE:
            return f"{role}.{_OF_A_ROLE[name[len(role) + 1 :]]}"
    role = "optimizer" if name == "copilot_chat_optimizer_model" else "target"
    return f"{role}.{_OF_A_ROLE[name]}" if name in _OF_A_ROLE else None
